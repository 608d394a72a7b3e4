// Draws every dashboard, healthy and in each drill: node dashboards/draw/draw.ts [--docs] [--state WORDS] FOLDER
//   --docs          only what docs/drills.md shows: all that is healthy, and of each drill the dashboard that shows it best
//   --state WORDS   only the states whose name contains this
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { drills } from '../../test/watch/drills.ts';
import { boards } from '../boards.ts';
import { type Drawer, openDrawer, type Picture, themes, widths } from './draw-board.ts';
import { faults } from './faults.ts';
import { historyUrl, serveHistory } from './history-server.ts';
import { listFiring } from './judge-alerts.ts';

/** End of every history: pictures do not depend on the day on which they are drawn. */
const end = Date.UTC(2026, 10, 23, 14, 10) / 1000;

const { values: options, positionals } = parseArgs({
  options: { docs: { type: 'boolean', default: false }, state: { type: 'string', default: '' } },
  allowPositionals: true,
});
const [folder = '.cache/pictures'] = positionals;

/** Draws the dashboards of one state and returns what is wrong with them. */
async function drawState(drill: string | null, drawer: Drawer): Promise<string[]> {
  const problems: string[] = [];
  const history = await serveHistory({ drill, end });
  try {
    const firing = await listFiring(historyUrl, end);
    const wanted = Object.keys(drills.find(({ name }) => name === drill)?.alerts ?? {}).sort();
    if (firing.join() !== wanted.join()) problems.push(`${drill ?? 'healthy'}: fires ${firing}, not ${wanted}`);
    for (const picture of picturesOf(drill)) {
      const { problems: found, shown } = await drawer.draw(picture, end);
      problems.push(...found.map((one) => `${picture.file}: ${one}`));
      const empty = shown.filter(({ points }) => points === 0).map(({ title }) => title);
      if (drill === null && empty.length > 0) problems.push(`${picture.file}: empty in a healthy system: ${empty}`);
    }
  } finally {
    await history.stop();
  }
  return problems;
}

function picturesOf(drill: string | null): Picture[] {
  const name = drill === null ? 'healthy' : drill.toLowerCase().replaceAll(/\W+/g, '-').replace(/-$/, '');
  const all = boards.flatMap(({ name: board }) =>
    themes.flatMap((theme) =>
      widths.map((width) => {
        return { board, theme, width, file: join(folder, `${name}-${board}-${theme}-${width}.png`) };
      }),
    ),
  );
  return options.docs ? all.filter((one) => isInDocs(one, drill)) : all;
}

function isInDocs({ board, theme, width }: Picture, drill: string | null): boolean {
  const best = faults.find((fault) => fault.drill === drill)?.board;
  return drill === null || (board === best && theme === 'dark' && width === widths[0]);
}

mkdirSync(folder, { recursive: true });
const drawer = await openDrawer();
const problems: string[] = [];
try {
  for (const drill of [null, ...faults.map((fault) => fault.drill)]) {
    if (!(drill ?? 'healthy').includes(options.state)) continue;
    problems.push(...(await drawState(drill, drawer)));
  }
} finally {
  await drawer.close();
}
for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
