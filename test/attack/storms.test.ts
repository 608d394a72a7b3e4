import { expect } from 'chai';
import { hasOwnUser } from '../../src/worker/sandbox-command.ts';
import { programsOfOthers } from '../support/other-user.ts';
import { until } from '../support/until.ts';
import { processesOf } from '../support/worker.ts';
import { openTestWorkspace } from '../support/workspace.ts';
import { film, startHostilePool } from './hostile-pool.ts';
import { type HostileSource, startHostileSource } from './hostile-source.ts';

/** Each process leaves two and ends, so that none is there for long enough to be found. */
const storm = `
import os, time
def run():
    while True:
        try:
            if os.fork():
                os.fork()
                os._exit(0)
        except OSError:
            pass
for n in range(20):
    if os.fork() == 0:
        os.setsid()
        run()
`;

describe('Processes that leave others and end', function () {
  this.timeout(120_000);
  let source: HostileSource;
  const others = programsOfOthers();
  before(async function () {
    this.timeout(180_000);
    source = await startHostileSource();
  });
  after(() => source.stop());

  // Without a user or a process namespace of its own, a storm would outlive a test that is killed.
  for (const sandbox of ['user', 'namespace', 'landlock-user'] as const) {
    const promise = hasOwnUser(sandbox) ? 'stop no other one and are' : 'are';
    it(`of one inspection ${promise} ended with the inspector (sandbox ${sandbox})`, async () => {
      const pool = await startHostilePool(source, sandbox, others);
      const hostile = pool
        .inspect(source.lay(`report('storms')\n${storm}\ntime.sleep(60)`), 'hostile')
        .catch(() => null);
      try {
        await until(() => source.reports.length > 0, 30, 'the storm begins');
        for (const account of hasOwnUser(sandbox) ? ['a', 'b'] : []) {
          expect(await pool.inspect(source.lay(film), account)).to.have.property('metadata');
        }
      } finally {
        await pool.close();
        await hostile;
      }
      await until(() => processesOf(pool.folder).length === 0, 10, 'nothing runs any more');
    });

    it(`of a worker are ended with it (sandbox ${sandbox})`, async () => {
      const place = await openTestWorkspace(sandbox, 1);
      const ended = place.python(`${storm}\nprint('storms', flush=True)\ntime.sleep(60)`, place.folder);
      await until(() => processesOf(place.folder).length > 5, 30, 'the storm begins');
      await place.stop();
      await ended;
      await until(() => processesOf(place.folder).length === 0, 10, 'nothing runs any more');
    });
  }
});
