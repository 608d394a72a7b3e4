import { join } from 'node:path';
import { expect } from 'chai';
import { inspectUrl } from '../../src/media/inspect-url.ts';
import { type InspectorPool, startInspectorPool } from '../../src/worker/inspector-pool.ts';
import { hasOwnUser } from '../../src/worker/sandbox-command.ts';
import { openToOthers, programsOfOthers } from '../support/other-user.ts';
import { startProxy } from '../support/proxy.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { processesOf, programs } from '../support/worker.ts';
import { openTestWorkspace } from '../support/workspace.ts';
import { type HostileSource, hostilePlugin, startHostileSource } from './hostile-source.ts';

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
const film = `info = {'url': source + '/film.mp4', 'ext': 'mp4', 'duration': 1, 'height': 1, 'vcodec': 'h264'}`;

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
      source.reports.length = 0;
      const { folder, remove } = aFolder();
      const proxy = await startProxy((host) => host === source.host);
      const root = join(folder, 'work');
      const close = sandbox === 'landlock-user' ? openToOthers(root) : () => undefined;
      const pool = await startInspectorPool({
        ...{ inspectUrl, programs: sandbox === 'landlock-user' ? others() : programs, root, cgroups: null, sandbox },
        ...{ egress: { host: '127.0.0.1', port: Number(new URL(proxy.url).port) }, plugins: [hostilePlugin] },
        ...{ inspectSeconds: 30, maxConcurrent: 4, maxRequests: 100, log: aLog().log },
      });
      const hostile = ask(pool, 'hostile', source.lay(`report('storms')\n${storm}\ntime.sleep(60)`)).catch(() => null);
      try {
        await until(() => source.reports.length > 0, 30, 'the storm begins');
        for (const account of hasOwnUser(sandbox) ? ['a', 'b'] : []) {
          expect(await ask(pool, account, source.lay(film))).to.have.property('metadata');
        }
      } finally {
        await pool.close();
        await hostile;
        await proxy.stop();
        close();
        remove();
      }
      await until(() => processesOf(folder).length === 0, 10, 'nothing runs any more');
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

function ask(pool: InspectorPool, account: string, url: string) {
  return pool.inspect(url, account, new AbortController().signal);
}
