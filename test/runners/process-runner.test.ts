import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { openProcessRunner } from '../../src/runners/process-runner.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { processesOf } from '../support/worker.ts';
import { itRunsAttempts, type RunnerUnderTest } from './runner.contract.ts';

/** Waits for a file that is named as its token and tells how to end. */
const script =
  'read name; echo $$ >>"$PLACE/$name.pids"; while [ ! -e "$PLACE/$name" ]; do sleep 0.02; done; . "$PLACE/$name"';

describe('workers as processes', function () {
  this.timeout(120_000);
  let place: ReturnType<typeof aFolder>;
  let tested: RunnerUnderTest;

  before(() => {
    place = aFolder();
    const runner = openProcessRunner({
      command: ['/bin/sh', '-c', script],
      env: { PLACE: place.folder, PATH: '/usr/bin:/bin' },
      tokenOf: ({ name }) => name,
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
});
