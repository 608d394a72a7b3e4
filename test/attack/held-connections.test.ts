import { expect } from 'chai';
import { programsOfOthers } from '../support/other-user.ts';
import { until } from '../support/until.ts';
import { sandboxes } from '../support/workspace.ts';
import { film, slots, startHostilePool } from './hostile-pool.ts';
import { type HostileSource, startHostileSource } from './hostile-source.ts';

/** Keeps as many connections to egress as it gets, at every port and at every socket behind bubblewrap. */
const hold = `
import os, socket, time
report('holds')
held = []
for port in range(3128, 3132):
    for name in ('egress', f'egress/{port}'):
        try:
            for n in range(100):
                held.append(socket.socket(socket.AF_UNIX))
                held[-1].connect(os.path.join(os.getcwd(), '../..', name))
        except OSError: pass
own = int(self_port)
for n in range(300):
    try: held.append(socket.create_connection(('127.0.0.1', own), 2))
    except OSError: pass
for port in range(own - 8, own + 8):
    for n in range(100):
        try: held.append(socket.create_connection(('127.0.0.1', port), 2))
        except OSError: break
time.sleep(3600)
`;
/** The port is a part of the URL of the proxy, which yt-dlp knows. */
const findPort = `
import gc, re
self_port = next(re.search(r':(\\d+)', each.params['proxy'])[1] for each in gc.get_objects() if type(each).__name__ == 'Downloader')
`;

describe('Connections to egress that a taken-over inspection keeps', () => {
  let source: HostileSource;
  const others = programsOfOthers();
  before(async () => {
    source = await startHostileSource();
  });
  after(() => source.stop());

  for (const sandbox of [...sandboxes, 'landlock-user'] as const) {
    it(`leave enough of them for every other inspection (sandbox ${sandbox})`, async () => {
      const pool = await startHostilePool(source, sandbox, sandbox === 'landlock-user' ? others : undefined);
      const left = new AbortController();
      const held = pool.inspect(source.lay(`${findPort}\n${hold}`), 'hostile', left.signal).catch(() => null);
      try {
        await until(() => source.reports.length > 0, 30, 'the attack begins');
        for (let round = 0; round < 6; round++) {
          expect(await pool.inspect(source.lay(film))).to.have.property('metadata');
        }
        left.abort();
        await held;
        // The port of the attack is free again.
        const all = Array.from({ length: slots }, (_, n) => pool.inspect(source.lay(film), `other${n}`));
        for (const found of await Promise.all(all)) expect(found).to.have.property('metadata');
      } finally {
        left.abort();
        await held;
        await pool.close();
      }
    });
  }
});
