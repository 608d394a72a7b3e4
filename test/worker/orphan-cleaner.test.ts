import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../support/until.ts';

const rounds = 20;
const windowMs = 10;
const cleaner = join(import.meta.dirname, '..', '..', 'src', 'worker', 'orphan-cleaner.ts');
const words = (beginning: string) => `
  import { startOrphanCleaner } from ${JSON.stringify(cleaner)};
  console.log('now');
  await startOrphanCleaner(${JSON.stringify(beginning)}, null);
  setInterval(() => {}, 1e6);`;

describe('The orphan cleaner', () => {
  it('removes the folder of a worker that is killed while it makes the folder', async () => {
    const root = mkdtempSync(join(tmpdir(), 'trawl-test-'));
    try {
      for (let round = 0; round < rounds; round++) {
        const args = ['--input-type=module-typescript', '--eval', words(join(root, 'job-'))];
        const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
        const early = once(child, 'exit').then(() => Promise.reject(new Error('the worker ended before it began')));
        await Promise.race([once(child.stdout, 'data'), early]);
        await pause((round / rounds) * windowMs);
        child.kill('SIGKILL');
        await early.catch(() => undefined);
        await until(() => readdirSync(root).length === 0, 10, `no folder is left after round ${round}`);
      }
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});
