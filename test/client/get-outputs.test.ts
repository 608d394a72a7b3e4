import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { aFolder } from '../support/redis.ts';
import { root } from '../support/tree.ts';
import { until } from '../support/until.ts';

const content = 'a film';
const sha256 = createHash('sha256').update(content).digest('hex');

describe('trawl get whose output is lost', () => {
  let server: Server;
  let url: string;
  let parent: string;
  let removeParent: () => void;
  /** Ids of jobs that were cancelled, and streams of jobs that run. */
  let cancelled: string[];
  let streams: Map<string, ServerResponse>;

  const jobOf = (id: string, hasEnded: boolean) => {
    const file = { response: `${url}/files/${id}`, bytes: content.length, sha256, content_type: 'video/mp4' };
    if (cancelled.includes(id)) return JSON.stringify({ status: 'Error', error: 'Cancelled', error_code: 'cancelled' });
    const result = { ...file, metadata: { title: id } };
    return JSON.stringify(hasEnded ? { status: 'CompletedJob', progress: 100, result } : { status: 'Running' });
  };
  const tell = (id: string, hasEnded: boolean) => streams.get(id)?.write(`id: 1\ndata: ${jobOf(id, hasEnded)}\n\n`);

  before(async () => {
    ({ folder: parent, remove: removeParent } = aFolder());
    server = createServer((request, response) => {
      const [, , , id = ''] = /^\/(v1\/)?(jobs|files|video)\/([^/?]+)/.exec(request.url ?? '') ?? [];
      if (request.method === 'POST') {
        let body = '';
        request.on('data', (chunk) => (body += chunk));
        request.on('end', () => response.end(JSON.stringify({ job_id: JSON.parse(body).query.split('/').at(-1) })));
        return;
      }
      if (request.url?.startsWith('/files/')) return void response.end(content);
      if (request.method === 'DELETE') cancelled.push(id);
      if (!request.url?.includes('/events')) return void response.end(jobOf(id, false));
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      streams.set(id, response);
      tell(id, false);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
    removeParent();
  });
  beforeEach(() => {
    cancelled = [];
    streams = new Map();
  });

  /** Starts the command for jobs that run, with what stands behind it in a shell, and waits until it follows them. */
  const start = async (ids: readonly string[], behind: string) => {
    const folder = mkdtempSync(join(parent, 'get-'));
    const line = `${root}/trawl get ${ids.map((id) => `${url}/x/${id}`).join(' ')} ${behind}`;
    const env = { ...process.env, TRAWL_API_URL: url, TRAWL_API_KEY: 'k' };
    const shell = spawn('bash', ['-c', line], { cwd: folder, env });
    const said = { err: '', out: '' };
    shell.stdout.setEncoding('utf8').on('data', (text) => (said.out += text));
    shell.stderr.setEncoding('utf8').on('data', (text) => (said.err += text));
    const ended = new Promise<number | null>((resolve) => shell.once('close', resolve));
    await until(() => ids.every((id) => streams.has(id)), 30, 'the jobs are followed');
    return { ended, said, files: () => readdirSync(folder).sort() };
  };

  it('cancels its open jobs when the reader of its paths leaves', async () => {
    // The reader has left when its line is there.
    const got = await start(['a', 'b', 'open'], `| { read -r path; exec <&-; echo $path; }; exit \${PIPESTATUS[0]}`);
    tell('a', true);
    await until(() => got.said.out === 'a.mp4\n', 20, 'the first path');
    tell('b', true);
    expect(await got.ended, got.said.err).to.equal(130);
    expect([cancelled, got.files()]).to.deep.equal([['open'], ['a.mp4', 'b.mp4']]);
    expect(got.said.err).to.contain('/x/open: cancelled, nothing is charged');
  });

  it('cancels its open jobs when its paths cannot be written', async () => {
    const got = await start(['a', 'open'], '> /dev/full');
    tell('a', true);
    expect(await got.ended, got.said.err).to.equal(130);
    expect([cancelled, got.files()]).to.deep.equal([['open'], ['a.mp4']]);
  });

  for (const [title, behind, said] of [
    ['has no reader', `| { exec <&-; echo left; }; exit \${PIPESTATUS[0]}`, 'left\n'],
    ['cannot be written', '> /dev/full', ''],
    ['cannot be written as JSON', '--json > /dev/full', ''],
  ] as const) {
    it(`ends with the exit code of an interrupt when its last path ${title}, and says why`, async () => {
      const got = await start(['a'], behind);
      await until(() => got.said.out === said, 20, 'the reader has left');
      tell('a', true);
      expect(await got.ended, got.said.err).to.equal(130);
      expect(got.said.err).to.match(/^Standard output takes no path: .*(EPIPE|ENOSPC)/m);
      expect([cancelled, got.files()]).to.deep.equal([[], ['a.mp4']]);
    });
  }

  it('fetches every file although nobody reads its progress any more', async () => {
    const got = await start(['a', 'b'], '2> >(head -n 1 > /dev/null)');
    tell('a', true);
    await until(() => got.said.out === 'a.mp4\n', 20, 'the first path');
    tell('b', true);
    expect([await got.ended, got.said.out]).to.deep.equal([0, 'a.mp4\nb.mp4\n']);
    expect([cancelled, got.files()]).to.deep.equal([[], ['a.mp4', 'b.mp4']]);
  });
});
