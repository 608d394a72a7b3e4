// Draws every dashboard, healthy and in each drill, and an index of the pictures: node dashboards/draw/draw.ts [--state WORDS] FOLDER
//   --state WORDS   only the states whose name contains this, and no index
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { drills } from '../../test/watch/drills.ts';
import { boards } from '../boards.ts';
import { type Drawer, openDrawer } from './draw-board.ts';
import { faults } from './faults.ts';
import { historyUrl, makeHistory, serveHistory } from './history-server.ts';
import { judgeAlerts } from './judge-alerts.ts';
import { fileOf, type Look, looks, nameOf, writeIndex } from './picture-index.ts';

/** End of every history: pictures do not depend on the day on which they are drawn. */
const end = Date.UTC(2026, 10, 23, 14, 10) / 1000;

const { values: options, positionals } = parseArgs({
  options: { state: { type: 'string' } },
  allowPositionals: true,
});
const [folder = '.cache/pictures'] = positionals;
const problems: string[] = [];

/** Draws the dashboards of one state. */
async function drawState(drill: string | null, drawer: Drawer): Promise<void> {
  const history = await serveHistory(makeHistory({ drill, end }));
  try {
    const firing = [...(await judgeAlerts(historyUrl, end)).values()].flat();
    const wanted = Object.keys(drills.find(({ name }) => name === drill)?.alerts ?? {}).sort();
    if (firing.join() !== wanted.join()) problems.push(`${nameOf(drill)}: fires ${firing}, not ${wanted}`);
    for (const { name } of boards) await drawBoard(drill, name, drawer);
  } finally {
    await history.stop();
  }
}

/** Draws one dashboard in each theme and width. One that looks as in a healthy system the first time does so the other times. */
async function drawBoard(drill: string | null, board: string, drawer: Drawer): Promise<void> {
  const pathOf = (state: string | null, look: Look) => join(folder, fileOf(state, { board, ...look }));
  const draw = async (look: Look) => {
    const file = pathOf(drill, look);
    const { problems: found, shown } = await drawer.draw({ board, ...look, file }, end);
    problems.push(...found.map((one) => `${file}: ${one}`));
    const empty = shown.filter(({ points }) => points === 0).map(({ title }) => title);
    if (drill === null && empty.length > 0) problems.push(`${file}: empty in a healthy system: ${empty}`);
  };
  const [first, ...others] = looks;
  await draw(first!);
  const healthy = pathOf(null, first!);
  const isHealthy = existsSync(healthy) && readFileSync(pathOf(drill, first!)).equals(readFileSync(healthy));
  if (drill === null || !isHealthy) await Promise.all(others.map(draw));
  else for (const look of others) copyFileSync(pathOf(null, look), pathOf(drill, look));
}

mkdirSync(folder, { recursive: true });
const isWhole = options.state === undefined;
if (isWhole) for (const path of globSync(join(folder, '*.webp'))) rmSync(path);
const states = [null, ...faults.map((fault) => fault.drill)];
const drawer = await openDrawer();
try {
  for (const drill of states) {
    if (isWhole || (drill ?? 'healthy').includes(options.state!)) await drawState(drill, drawer);
  }
} finally {
  await drawer.close();
}
if (isWhole) writeIndex(folder, states);
for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
