import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { runCommand as runGet } from '../../src/client/get.ts';
import { defaultPatience } from '../../src/client/patience.ts';
import { startCommand } from '../support/caller.ts';
import { startClosedProxy } from '../support/closed-proxy.ts';
import { aFolder } from '../support/redis.ts';

describe('trawl get whose first contact fails', () => {
  let scene: ReturnType<typeof aFolder>;
  beforeEach(() => {
    scene = aFolder();
  });
  afterEach(() => scene.remove());

  it('leaves its last try the time for an answer', async () => {
    let calls = 0;
    const server = createServer((_asking, reply) => {
      calls += 1;
      if (calls === 1) return void reply.writeHead(503, { 'retry-after': '30' }).end('{"error":"Service Unavailable"}');
      const refuse = () => reply.writeHead(402, { 'x-error-code': 'payment_required' }).end('{"error":"No credit"}');
      setTimeout(refuse, 100);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const env = { TRAWL_API_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, TRAWL_API_KEY: 'k' };
      let err = '';
      const note = (text: string) => {
        err += text;
      };
      const terminal = { out: () => undefined, err: note, isWatched: false, env };
      const args = ['https://a.example/1', '--output', `${scene.folder}/`];
      const begun = performance.now();
      let endMs: number | undefined;
      // The time for a first contact ends 300 ms after the refusal was heard, however late that was.
      const patience = {
        ...{ ...defaultPatience, minTryMs: 60_000 },
        get firstMs() {
          if (calls === 0) return 60_000;
          endMs ??= performance.now() - begun + 300;
          return endMs;
        },
      };
      await runGet(args, terminal, patience);
      expect([err.split('\n')[0], calls]).to.deep.equal(['https://a.example/1: No credit', 2]);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it('ends at once, and names no key, when a forward proxy does not reach the service and then wants a password', async () => {
    const proxy = await startClosedProxy('503 Service Unavailable', '407 Proxy Authentication Required');
    try {
      const env = { ...proxy.env, TRAWL_API_URL: 'https://trawl.example', TRAWL_API_KEY: 'k' };
      const get = startCommand(['get', 'https://a.example/1'], scene.folder, env);
      const code = await get.ended;
      expect([code, proxy.asked], get.err()).to.deep.equal([3, ['trawl.example:443', 'trawl.example:443']]);
      expect(get.err())
        .to.match(/No way to https:\/\/trawl\.example: .*407/)
        .and.not.include('--idempotency-key');
    } finally {
      await proxy.stop();
    }
  });
});
