// Draws every dashboard, healthy and in each drill, and an index of the pictures: node dashboards/draw/draw.ts [--state WORDS] FOLDER
//   --state WORDS   only the states whose name contains this, and no index
import { createHash } from 'node:crypto';
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { drills } from '../../test/watch/drills.ts';
import { boards } from '../boards.ts';
import { type Drawer, openDrawer } from './draw-board.ts';
import { faults } from './faults.ts';
import { historyUrl, makeHistory, serveHistory } from './history-server.ts';
import { judgeAlerts } from './judge-alerts.ts';
import { themes, widths } from './picture.ts';
import { type DrawnState, nameOf, writeIndex } from './picture-index.ts';

/** End of every history: pictures do not depend on the day on which they are drawn. */
const end = Date.UTC(2026, 10, 23, 14, 10) / 1000;

const { values: options, positionals } = parseArgs({
  options: { state: { type: 'string' } },
  allowPositionals: true,
});
const [folder = '.cache/pictures'] = positionals;
const problems: string[] = [];
/** First picture of each content, by its hash: a dashboard that a fault does not change is kept once. */
const kept = new Map<string, string>();

/** Draws the dashboards of one state. */
async function drawState(drill: string | null, drawer: Drawer): Promise<DrawnState> {
  const history = await serveHistory(makeHistory({ drill, end }));
  try {
    const firing = [...(await judgeAlerts(historyUrl, end)).values()].flat();
    const wanted = Object.keys(drills.find(({ name }) => name === drill)?.alerts ?? {}).sort();
    if (firing.join() !== wanted.join()) problems.push(`${nameOf(drill)}: fires ${firing}, not ${wanted}`);
    const files = new Map<string, string>();
    for (const { name: board } of boards)
      for (const theme of themes)
        for (const width of widths) {
          const key = `${board}-${theme}-${width}`;
          const file = `${nameOf(drill)}-${key}.webp`;
          const { problems: found, shown } = await drawer.draw({ board, theme, width, file: join(folder, file) }, end);
          problems.push(...found.map((one) => `${file}: ${one}`));
          const empty = shown.filter(({ points }) => points === 0).map(({ title }) => title);
          if (drill === null && empty.length > 0) problems.push(`${file}: empty in a healthy system: ${empty}`);
          files.set(key, keepOnce(file));
        }
    return { drill, files };
  } finally {
    await history.stop();
  }
}

/** Removes a picture that is there already under another name, and returns the name that stays. */
function keepOnce(file: string): string {
  const path = join(folder, file);
  const hash = createHash('sha256').update(readFileSync(path)).digest('hex');
  const first = kept.get(hash);
  if (first === undefined) kept.set(hash, file);
  else rmSync(path);
  return first ?? file;
}

mkdirSync(folder, { recursive: true });
const isWhole = options.state === undefined;
if (isWhole) for (const path of globSync(join(folder, '*.webp'))) rmSync(path);
const drawer = await openDrawer();
const drawn: DrawnState[] = [];
try {
  for (const drill of [null, ...faults.map((fault) => fault.drill)]) {
    if (isWhole || (drill ?? 'healthy').includes(options.state!)) drawn.push(await drawState(drill, drawer));
  }
} finally {
  await drawer.close();
}
if (isWhole) writeFileSync(join(folder, 'README.md'), writeIndex(drawn));
for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
