// Draws every dashboard, healthy and in each drill, and an index of the pictures: node dashboards/draw/draw.ts [--state WORDS] FOLDER
//   --state WORDS   only the states whose name contains this, and no index
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { drills } from '../../test/watch/drills.ts';
import { boards } from '../boards.ts';
import { type Drawer, openDrawer } from './draw-board.ts';
import { faults } from './faults.ts';
import { historyUrl, makeHistory, serveHistory } from './history-server.ts';
import { judgeAlerts } from './judge-alerts.ts';
import { fileOf, type Look, looks, nameOf, writeIndex } from './picture-index.ts';
import { writePictureSet } from './picture-set.ts';

/** End of every history: pictures do not depend on the day on which they are drawn. */
const end = Date.UTC(2026, 10, 23, 14, 10) / 1000;

const { values: options, positionals } = parseArgs({
  options: { state: { type: 'string' } },
  allowPositionals: true,
});
const [folder = '.cache/pictures'] = positionals;
const isWhole = options.state === undefined;
const states = [null, ...faults.map((fault) => fault.drill)];

/** Draws the dashboards of one state, and returns what is wrong with them. */
async function drawState(drill: string | null, drawer: Drawer, to: string): Promise<string[]> {
  const history = await serveHistory(makeHistory({ drill, end }));
  try {
    const firing = [...(await judgeAlerts(historyUrl, end)).values()].flat();
    const wanted = Object.keys(drills.find(({ name }) => name === drill)?.alerts ?? {}).sort();
    const problems = firing.join() === wanted.join() ? [] : [`${nameOf(drill)}: fires ${firing}, not ${wanted}`];
    for (const { name } of boards) problems.push(...(await drawBoard(drill, name, drawer, to)));
    return problems;
  } finally {
    await history.stop();
  }
}

/**
 * Draws one dashboard in each theme and width, and returns what is wrong with it. One that looks as in a healthy system the first time
 * does so the other times.
 */
async function drawBoard(drill: string | null, board: string, drawer: Drawer, to: string): Promise<string[]> {
  const pathOf = (state: string | null, look: Look) => join(to, fileOf(state, { board, ...look }));
  const draw = async (look: Look) => {
    const file = pathOf(drill, look);
    const shown = await drawer.draw({ board, ...look, file }, end);
    const empty = shown.filter(({ points }) => points === 0).map(({ title }) => title);
    const isFaulty = drill === null && empty.length > 0;
    return isFaulty ? [`${board}, ${look.theme} ${look.width}: empty in a healthy system: ${empty}`] : [];
  };
  const [first, ...others] = looks;
  const problems = await draw(first!);
  const healthy = pathOf(null, first!);
  const isHealthy = existsSync(healthy) && readFileSync(pathOf(drill, first!)).equals(readFileSync(healthy));
  if (drill === null || !isHealthy) problems.push(...(await Promise.all(others.map(draw))).flat());
  else for (const look of others) copyFileSync(pathOf(null, look), pathOf(drill, look));
  return problems;
}

const drawer = await openDrawer();
try {
  await writePictureSet({ folder, old: isWhole ? '*.webp' : null }, async (to) => {
    const problems: string[] = [];
    for (const drill of states) {
      if (isWhole || (drill ?? 'healthy').includes(options.state!))
        problems.push(...(await drawState(drill, drawer, to)));
    }
    if (isWhole) writeIndex(to, states);
    return problems;
  });
} finally {
  await drawer.close();
}
