import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { runGet } from '../../src/client/get.ts';
import { aFolder } from '../support/redis.ts';

const half = Buffer.alloc(4096, 'a');
/** Fetches after which the test ends a command that would go on for ever. */
const maxFetches = 50;

describe('trawl get behind a proxy that ignores ranges', () => {
  let server: Server;
  let fetches = 0;
  before(async () => {
    server = createServer(({ url = '', headers }, response) => {
      const result = {
        response: `http://${headers.host}/file`,
        bytes: 2 * half.length,
        sha256: 'f',
        content_type: 'video/mp4',
      };
      const job = JSON.stringify({ status: 'CompletedJob', progress: 100, args: {}, result });
      if (url.startsWith('/v1/video/')) return void response.writeHead(202).end('{"job_id":"1"}');
      if (url.includes('/events')) return void response.end(`id: 1\ndata: ${job}\n\n`);
      if (url !== '/file') return void response.end(job);
      fetches += 1;
      if (fetches > maxFetches) return void response.writeHead(404).end();
      response.writeHead(200, { 'content-length': 2 * half.length }).write(half, () => response.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });

  it('gives up a file of which every connection brings the same beginning', async () => {
    const { folder, remove } = aFolder();
    const env = { TRAWL_API_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, TRAWL_API_KEY: 'k' };
    const limits = { firstMs: 60_000, acceptedMs: 500, refusedMs: 500 };
    let said = '';
    const out = (text: string) => {
      said += text;
    };
    try {
      const args = ['https://a.example/1', '--json', '--output', `${folder}/`];
      expect(await runGet(args, { out, err: () => undefined, isWatched: false, env }, limits)).to.equal(3);
    } finally {
      remove();
    }
    expect(JSON.parse(said)).to.deep.include({ job_id: '1', path: null, error_code: 'unavailable' });
  });
});
