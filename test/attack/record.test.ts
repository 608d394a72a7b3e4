import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { makeService, type Service } from '../support/service.ts';
import { until } from '../support/until.ts';
import { sandboxes } from '../support/workspace.ts';
import { attackInspector, attackWorker } from './hostile-attempt.ts';
import { type HostileSource, hostilePlugin, startHostileSource } from './hostile-source.ts';

/** Asks the record for everything, and looks for its password wherever a process of trawl could have it. */
const ask = `
import glob, os, socket
def tried(what):
    try: return what()
    except OSError as error: return type(error).__name__
def talk():
    way = socket.socket(socket.AF_UNIX)
    way.settimeout(5)
    way.connect(given['socket'])
    way.sendall(b'KEYS *\\r\\nCONFIG GET requirepass\\r\\nSET stolen yes\\r\\n')
    said = b''
    while said.count(b'\\r\\n') < 3: said += way.recv(65536)
    return said.decode()
def read(path):
    with open(path, 'rb') as file: return file.read().decode('latin1')
seen = [tried(talk), tried(lambda: read(given['password']))]
for part in ('cmdline', 'environ'):
    seen += [tried(lambda: read(path)) for path in glob.glob(f'/proc/[0-9]*/{part}')]
report('\\n'.join(seen))
failure = 'Unsupported URL'
`;

describe('The record', () => {
  let source: HostileSource;
  before(async () => {
    source = await startHostileSource();
  });
  after(() => source.stop());
  beforeEach(() => {
    source.reports.length = 0;
  });

  describe('behind the password of its redis-server', () => {
    let redis: TestRedis;
    let password: string;
    before(async () => {
      redis = await startTestRedis();
      await redis.connection.send(['SET', '{trawl}:account:canary', 'balance of somebody']);
      password = /:([\w-]+)@/.exec(redis.url)?.[1] ?? 'no password';
    });
    after(() => redis.stop());

    for (const sandbox of sandboxes) {
      for (const [part, attack] of [
        ['worker', attackWorker],
        ['inspector', attackInspector],
      ] as const) {
        it(`says nothing to a yt-dlp that was taken over (${part}, sandbox ${sandbox})`, async () => {
          const { socket } = redis.server;
          const url = source.lay(ask, { socket, password: join(socket, '..', 'password') });
          await attack({ source, url, sandbox });
          expect(source.reports).to.have.lengthOf(1);
          expect(source.reports.join()).to.not.include('canary').and.not.include(password);
          expect(await redis.connection.send(['GET', 'stolen'])).to.equal(null);
        });
      }
    }
  });

  describe('of trawl up without a sandbox', () => {
    let service: Service;
    before(async () => {
      service = makeService({ TRAWL_SANDBOX: 'off', TRAWL_YTDLP_PLUGINS: hostilePlugin });
      await service.start();
    });
    after(() => service.close());

    const folder = () => join(service.data, 'redis');
    const passwordNow = () => readFileSync(join(folder(), 'password'), 'utf8').trim();

    it('says nothing to a yt-dlp that was taken over', async () => {
      const { account, key } = await service.aCustomer();
      const url = source.lay(ask, { socket: join(folder(), 'redis.sock'), password: join(folder(), 'password') });
      const id = await service.submit(key, `/v1/video/download?query=${encodeURIComponent(url)}`);
      await until(() => source.reports.length > 0, 20, 'the attack has run');
      expect(source.reports.join()).to.not.include(account).and.not.include(passwordNow());
      await service.ended([id], 30);
    });

    it('has a password that stands in no arguments and no environment, and another one after each start', async () => {
      const before = passwordNow();
      expect(before).to.have.lengthOf(43);
      expect(statSync(join(folder(), 'password')).mode & 0o777).to.equal(0o600);
      const told = service
        .processes()
        .flatMap((pid) => [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`])
        .flatMap(textIfThere);
      expect(told).to.have.length.above(6);
      expect(told.join()).to.not.include(before);
      expect(service.up().output()).to.not.include(before);
      await service.stop();
      await service.start();
      expect(passwordNow()).to.not.equal(before);
      // The record is found with the new one.
      await service.aCustomer();
    });
  });
});

/** Returns the text of a file of a process, which may have ended meanwhile. */
function textIfThere(path: string): string[] {
  try {
    return [readFileSync(path, 'latin1')];
  } catch {
    return [];
  }
}
