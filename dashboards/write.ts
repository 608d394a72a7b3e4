import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { boards } from './boards.ts';
import { makeDashboard } from './panels.ts';

const folder = join(import.meta.dirname, '..', 'charts', 'trawl', 'dashboards');

mkdirSync(folder, { recursive: true });
for (const board of boards) {
  writeFileSync(join(folder, `${board.name}.json`), `${JSON.stringify(makeDashboard(board), null, 2)}\n`);
}
