import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { ownCommand } from '../../src/roles/children.ts';
import { makeFilms } from '../support/films.ts';
import { freePort } from '../support/free-port.ts';
import { startGateway } from '../support/gateway.ts';
import { plugins } from '../support/media.ts';
import { startProxy, type TestProxy } from '../support/proxy.ts';
import { aFolder } from '../support/redis.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';
import { startWorker, type TestWorkerOptions } from '../support/worker.ts';

const secret = 'a-secret-of-the-operator';

interface Asked {
  readonly host: string;
  readonly path: string;
  readonly cookie: string | undefined;
}

describe('Cookies and plugins of the operator', () => {
  let source: Source;
  let proxy: TestProxy;
  const asked: Asked[] = [];
  /** Answers by two names: one has cookies, the other is where it sends its visitors. */
  const site = createServer(({ headers, url = '' }, answer) => {
    const { host = '', cookie } = headers;
    asked.push({ host, path: url, cookie });
    if (url === '/elsewhere') answer.writeHead(302, { location: `http://${nameOf('localhost')}/film.mp4` }).end();
    else if (url !== '/film.mp4') answer.writeHead(404).end();
    else createReadStream(join(makeFilms(), 'clip.mp4')).pipe(answer.setHeader('content-type', 'video/mp4'));
  });
  const nameOf = (host: string) => `${host}:${(site.address() as AddressInfo).port}`;

  before(async () => {
    source = await startSource();
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
    proxy = await startProxy((host) => [source.host, nameOf('127.0.0.1'), nameOf('localhost')].includes(host));
  });
  after(async () => {
    site.close();
    await proxy.stop();
    await source.stop();
  });

  /** Runs a job with cookies for 127.0.0.1, and gives its verdict and everything that it said anywhere. */
  async function run(query: string, options: Pick<TestWorkerOptions, 'sandbox' | 'plugins'>) {
    const { folder, remove } = aFolder();
    const terminationFile = join(folder, 'end');
    const expires = Math.trunc(Date.now() / 1000) + 3600;
    const lines = [`# Netscape HTTP Cookie File`, `127.0.0.1\tFALSE\t/\tFALSE\t${expires}\tsession\t${secret}`, ''];
    asked.length = 0;
    const order = { endpoint: 'video', args: { query } } as const;
    const gateway = await startGateway({ folder, order, cookies: lines.join('\n') });
    const address = { gateway: gateway.address, egress: proxy.url, terminationFile };
    try {
      const worker = startWorker({ folder, media: 'real', ...address, ...options });
      await worker.exit;
      const [verdict] = gateway.verdicts;
      const said = [worker.stderr(), JSON.stringify([gateway.verdicts, gateway.told]), readFileSync(terminationFile)];
      return { verdict, said: said.join('\n') };
    } finally {
      await gateway.stop();
      remove();
    }
  }

  for (const sandbox of ['required', 'off'] as const) {
    it(`cookies reach their own site alone and appear in no log or answer (sandbox ${sandbox})`, async () => {
      const { verdict, said } = await run(`http://${nameOf('127.0.0.1')}/elsewhere`, { sandbox });
      expect(verdict, said).to.include({ is: 'done' });
      const own = asked.filter(({ host }) => host === nameOf('127.0.0.1'));
      const others = asked.filter(({ host }) => host === nameOf('localhost'));
      expect(new Set(own.map(({ cookie }) => cookie))).to.deep.equal(new Set([`session=${secret}`]));
      expect(new Set(others.map(({ cookie }) => cookie))).to.deep.equal(new Set([undefined]));
      expect(said).to.not.include(secret);
    });

    it(`cookies appear in no log or answer of a job that fails (sandbox ${sandbox})`, async () => {
      const { verdict, said } = await run(`http://${nameOf('127.0.0.1')}/gone`, { sandbox });
      expect(verdict, said).to.include({ is: 'failed', code: 'deleted' });
      expect(asked[0]?.cookie).to.equal(`session=${secret}`);
      expect(said).to.not.include(secret);
    });

    it(`plugins of yt-dlp are loaded only where the settings name them (sandbox ${sandbox})`, async () => {
      const formats = [{ format_id: 'x', url: `${source.url}/films/clip.mp4`, ext: 'mp4' }];
      const query = source.addPage('a-film', { info: { title: 'By a plugin', formats } });
      const { verdict, said } = await run(query, { sandbox, plugins: [plugins] });
      expect(verdict?.metadata, said).to.include({ title: 'By a plugin', extractor: 'testpage' });
      expect((await run(query, { sandbox })).verdict).to.include({ is: 'failed', code: 'unsupported_url' });
    });
  }

  it('the inspector starts without a plugin folder that only the worker image has', async () => {
    const { folder, remove } = aFolder();
    const probe = await freePort();
    const child = spawn(process.execPath, [...ownCommand.slice(1), 'inspector', '--lifeline'], {
      stdio: 'pipe',
      env: {
        PATH: process.env.PATH,
        TRAWL_DATA: folder,
        TRAWL_PROBE_PORT: String(probe),
        TRAWL_INSPECTOR_ADDRESS: `unix:${join(folder, 'inspector')}`,
        TRAWL_EGRESS_ADDRESS: `unix:${join(folder, 'egress')}`,
        TRAWL_YTDLP_PLUGINS: '/nowhere/plugins',
      },
    });
    let said = '';
    child.stderr.on('data', (piece) => {
      said += piece;
    });
    await until(() => said.includes('inspector listens'), 25, 'it listens');
    expect(said).to.include('/nowhere/plugins').and.include('"role":"inspector"');
    const scrape = async () => (await fetch(`http://127.0.0.1:${probe}/metrics`)).text();
    await until(
      async () => /^trawl_yt_dlp_info\{version="20\d\d\.[\d.]+"\} 1$/m.test(await scrape()),
      25,
      'its yt-dlp is shown',
    );
    expect(await scrape()).to.match(/^trawl_build_info\{version="\d+\.\d+\.\d+",role="inspector"\} 1$/m);
    const gone = once(child, 'exit');
    child.stdin.end();
    await gone;
    remove();
  });
});
