import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../support/until.ts';

const rounds = 20;
const windowMilliseconds = 10;
const cleaner = join(import.meta.dirname, '..', '..', 'src', 'worker', 'orphan-cleaner.ts');
const words = (beginning: string) => `
  import { startOrphanCleaner } from ${JSON.stringify(cleaner)};
  console.log('now');
  await startOrphanCleaner(${JSON.stringify(beginning)});
  setInterval(() => {}, 1e6);`;

describe('the cleaner of a folder', function () {
  this.timeout(120_000);

  it('a worker that is killed while it makes its folder leaves none', async () => {
    const root = mkdtempSync(join(tmpdir(), 'trawl-test-'));
    try {
      for (let round = 0; round < rounds; round++) {
        const args = ['--input-type=module-typescript', '--eval', words(join(root, 'job-'))];
        const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
        await once(child.stdout, 'data');
        await pause((round / rounds) * windowMilliseconds);
        child.kill('SIGKILL');
        await once(child, 'exit');
        await until(() => readdirSync(root).length === 0, 10, `no folder is left after round ${round}`);
      }
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});
