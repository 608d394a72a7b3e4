import { hash } from 'node:crypto';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { followJob } from '../../src/client/follow-job.ts';
import { runCommand as runGet } from '../../src/client/get.ts';
import { makePatience } from '../../src/client/patience.ts';
import { makeServiceClient } from '../../src/client/service-client.ts';
import { aFolder } from '../support/redis.ts';

const half = Buffer.alloc(4096, 'a');
/** Fetches after which the test ends a command that would go on for ever. */
const maxFetches = 50;

function jobIdOf(url: string): string | undefined {
  return url.split('/')[3];
}

describe('trawl get', () => {
  let server: Server;
  let fetches = 0;
  let hasStreams = true;
  let polls = 1;
  let streams = 0;
  let batches = 0;
  /** To the next fetches of the file. */
  let answers: ((response: ServerResponse) => void)[] = [];
  before(async () => {
    server = createServer(({ url = '', headers }, response) => {
      const result = {
        response: `http://${headers.host}/file`,
        bytes: 2 * half.length,
        sha256: hash('sha256', Buffer.concat([half, half])),
        content_type: 'video/mp4',
      };
      const job = JSON.stringify({ status: 'CompletedJob', progress: 100, args: {}, result });
      if (url === '/v1/batches') {
        batches += 1;
        const answer = response.writeHead(429, { 'x-error-code': 'rate_limited' });
        return void answer.end('{"error":"You have exceeded the open-jobs rate limit on your subscription"}');
      }
      if (url.startsWith('/v1/video/')) return void response.writeHead(202).end('{"job_id":"1"}');
      if (url.includes('/events')) streams += 1;
      const isRefused = jobIdOf(url) === 'slow' ? streams === 2 : !hasStreams;
      if (url.includes('/events') && isRefused) {
        const refused = { 'x-error-code': 'rate_limited', 'retry-after': '1' };
        return void response.writeHead(429, refused).end('{"error":"You have exceeded the waiting-calls rate limit"}');
      }
      if (url.includes('/events') && jobIdOf(url) === 'slow' && streams === 1) {
        return void response.end('id: 1\ndata: {"status":"Running","progress":1,"args":{}}\n\n');
      }
      if (url.includes('/events')) return void response.end(`id: 1\ndata: ${job}\n\n`);
      if (url !== '/file') {
        polls += 1;
        return void response.end(polls > 1 ? job : '{"status":"Running","progress":5,"args":{}}');
      }
      const answer = answers.shift();
      if (answer !== undefined) return void answer(response);
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

  const get = async (acceptedMs: number, ...options: readonly string[]) => {
    const { folder, remove } = aFolder();
    const env = { TRAWL_API_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, TRAWL_API_KEY: 'k' };
    const limits = { firstMs: 60_000, acceptedMs, refusedMs: 2_500, minTryMs: 1 };
    let said = '';
    const out = (text: string) => {
      said += text;
    };
    try {
      const args = ['https://a.example/1', '--json', '--output', `${folder}/`, ...options];
      const code = await runGet(args, { out, err: () => undefined, isWatched: false, env }, limits);
      return { code, ...JSON.parse(said) };
    } finally {
      remove();
    }
  };

  it('gives up a file of which every connection brings the same beginning', async () => {
    expect(await get(500)).to.deep.include({ code: 3, job_id: '1', path: null, error_code: 'unavailable' });
  });

  it('takes no page of a proxy for the file, and keeps what came before it', async () => {
    const page = '<html>Please sign in</html>';
    const rest = { 'content-range': `bytes 4096-8191/${2 * half.length}` };
    const asked: unknown[] = [];
    const noted = (say: (response: ServerResponse) => void) => (response: ServerResponse) => {
      asked.push(response.req.headers.range);
      say(response);
    };
    answers = [
      (response: ServerResponse) => response.setHeader('content-length', page.length).end(page),
      (response: ServerResponse) => response.setHeader('content-type', 'text/html').end(page),
      (response: ServerResponse) =>
        response.writeHead(200, { 'content-length': 2 * half.length }).write(half, () => response.destroy()),
      (response: ServerResponse) => response.setHeader('content-type', 'text/html; charset=utf-8').end(page),
      (response: ServerResponse) => response.writeHead(206, rest).end(half),
    ].map(noted);
    expect(await get(20_000)).to.deep.include({ code: 0, job_id: '1', error_code: null });
    expect(asked).to.deep.equal([undefined, undefined, undefined, 'bytes=4096-', 'bytes=4096-']);
  });

  it('follows a job to its end although the account has as many waiting calls as it may have', async () => {
    hasStreams = false;
    polls = 0;
    fetches = maxFetches;
    expect(await get(1_500)).to.deep.include({ code: 1, status: 'CompletedJob', error_code: 'not_found' });
    expect(polls).to.equal(2);
  });

  it('shows no progress that goes back when a stream follows a poll', async () => {
    [polls, streams] = [0, 0];
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const patience = makePatience(url);
    const client = makeServiceClient({ url, key: 'k' }, patience);
    const seen: number[] = [];
    const { signal } = new AbortController();
    await followJob({ client, patience, jobId: 'slow', signal }, ({ progress }) => seen.push(progress));
    expect(seen).to.deep.equal([1, 5, 5, 100]);
  });

  it('does not repeat a playlist with more entries than the account may have jobs', async () => {
    expect(await get(500, '--playlist', '9')).to.deep.include({ code: 1, job_id: null, error_code: 'rate_limited' });
    expect(batches).to.equal(1);
  });
});
