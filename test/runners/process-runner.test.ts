import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { openProcessRunner } from '../../src/runners/process-runner.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { processesOf } from '../support/worker.ts';
import { itRunsAttempts, type RunnerUnderTest } from './runner.contract.ts';

const run = promisify(execFile);
const jobId = randomUUID();
const attempt = { name: `${jobId}-1`, jobId, attempt: 1, maxMs: 600_000 } as const;
const plain = { env: {}, tokenOf: () => 'token', freeBytes: () => Number.POSITIVE_INFINITY, log: aLog().log };

/** Waits for a file that is named as its token and tells how to end. */
const script =
  'read name; echo $$ >>"$PLACE/$name.pids"; while [ ! -e "$PLACE/$name" ]; do sleep 0.02; done; . "$PLACE/$name"';

describe('workers as processes', () => {
  let place: ReturnType<typeof aFolder>;
  let tested: RunnerUnderTest;

  before(() => {
    place = aFolder();
    const runner = openProcessRunner({
      command: ['/bin/sh', '-c', script],
      env: { PLACE: place.folder, PATH: '/usr/bin:/bin' },
      tokenOf: ({ name }) => name,
      freeBytes: () => Number.POSITIVE_INFINITY,
      log: aLog().log,
    });
    // Renamed: a worker that finds its file before it is written whole would end with 0.
    const say = (name: string, words: string) => {
      const file = join(place.folder, name);
      writeFileSync(`${file}.part`, words);
      renameSync(`${file}.part`, file);
    };
    const pids = (name: string) => {
      const file = join(place.folder, `${name}.pids`);
      return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
    };
    tested = {
      runner,
      end: async (name, code) => say(name, `exit ${code}`),
      kill: async (name) => say(name, 'kill -KILL $$'),
      count: async (name) => pids(name).filter((pid) => existsSync(`/proc/${pid}`)).length,
    };
  });
  after(async () => {
    await tested.runner.close();
    expect(processesOf(place.folder)).to.deep.equal([]);
    place.remove();
  });

  itRunsAttempts(() => tested);

  it('rejects the start of a worker whose program is missing, and starts it once the program is back', async () => {
    const program = join(place.folder, 'program');
    const runner = openProcessRunner({ ...plain, command: [program] });
    // A hint at each failed start would repeat it without a pause.
    const told: string[] = [];
    const unwatch = runner.watch((name) => told.push(name));
    const refused = await runner.start(attempt).catch(({ code }: NodeJS.ErrnoException) => code);
    const left = [await runner.see(attempt.name), await runner.list(), told];
    expect([refused, ...left]).to.deep.equal(['ENOENT', { is: 'absent' }, [], []]);
    unwatch();
    writeFileSync(program, '#!/bin/sh\nread more\nread forever\n', { mode: 0o755 });
    await runner.start(attempt);
    expect(await runner.see(attempt.name)).to.deep.equal({ is: 'running' });
    expect(await runner.close()).to.deep.equal([attempt.name]);
  });

  it('delays the start of a worker while the disk of the workers is full, with a reason that its caller reads', async () => {
    let free = 1_000_000;
    const runner = openProcessRunner({ ...plain, command: ['/bin/cat'], freeBytes: () => free });
    const late = await runner.start(attempt).catch((error) => error);
    expect([late.constructor.name, late.reason]).to.deep.equal(['StartDelayed', 'The disk of the workers is full']);
    expect(await runner.see(attempt.name)).to.deep.equal({ is: 'absent' });
    free = 100_000_000;
    await runner.start(attempt);
    free = 0;
    await runner.start(attempt);
    expect(await runner.close()).to.deep.equal([attempt.name]);
  });

  it('rejects the start of a worker while no more files can be opened, which ends nothing else', async () => {
    const script = join(import.meta.dirname, '../support/full-of-files.ts');
    const tried = await run('prlimit', ['--nofile=100', process.execPath, script, 'worker']);
    expect(tried.stdout).to.equal('EMFILE absent running');
  });
});
