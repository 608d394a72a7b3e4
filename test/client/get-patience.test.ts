import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { runCommand as runGet } from '../../src/client/get.ts';
import type { PatienceLimits } from '../../src/client/patience.ts';
import { startCommand } from '../support/caller.ts';
import { freePort } from '../support/free-port.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';

describe('trawl get without its service', () => {
  const limits: PatienceLimits = { firstMs: 300, acceptedMs: 600, refusedMs: 500, minTryMs: 60_000 };
  /** For a server that answers: a busy machine may need seconds for it. */
  const patient: PatienceLimits = { firstMs: 60_000, acceptedMs: 60_000, refusedMs: 500, minTryMs: 1 };
  const accepted = { status: 202, body: '{"job_id":"1"}' };
  const suspended = { status: 403, headers: { 'x-error-code': 'forbidden' }, body: '{"error":"Forbidden"}' };
  const jobOf = (status: string) => ({
    status: 200,
    body: JSON.stringify({ status, progress: 0, args: { query: 'https://a.example/1' } }),
  });
  let server: Server;
  let url: string;
  let answer: (
    path: string,
    method: string,
  ) => { status: number; headers?: Record<string, string>; body: string } | null;
  let paths: string[];
  let keys: (string | undefined)[];
  before(async () => {
    server = createServer((asking, reply) => {
      paths.push(asking.url ?? '');
      keys.push(asking.headers['idempotency-key'] as string | undefined);
      const said = answer(asking.url ?? '', asking.method ?? '');
      if (said === null) reply.destroy();
      else reply.writeHead(said.status, said.headers).end(said.body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  beforeEach(() => {
    paths = [];
    keys = [];
  });

  const get = async (args: readonly string[], address = url, patience = patient) => {
    const said = { out: '', err: '' };
    const out = (text: string) => {
      said.out += text;
    };
    const err = (text: string) => {
      said.err += text;
    };
    const env = { TRAWL_API_URL: address, TRAWL_API_KEY: 'k' };
    return { code: await runGet(args, { out, err, isWatched: false, env }, patience), ...said };
  };

  it('gives up the first contact, and asks for nothing more', async () => {
    answer = () => null;
    const args = ['https://a.example/1', 'https://a.example/2', '--parallel', '1', '--json'];
    const { code, out } = await get(args, url, limits);
    expect(code).to.equal(3);
    const rows = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(rows.map(({ query, error_code }) => [query, error_code])).to.deep.equal([
      ['https://a.example/1', 'unavailable'],
      ['https://a.example/2', 'unavailable'],
    ]);
    expect(rows[0].error).to.contain(`No way to ${url}: `);
  });

  it('names the key with which a request that may have been accepted is repeated as the same one', async () => {
    answer = () => ({ status: 503, body: '{"error":"Service Unavailable"}' });
    const brief = { ...limits, firstMs: 1000 };
    const { code, err } = await get(['https://a.example/1', '--audio'], url, brief);
    const [, named = ''] = /^The service may have accepted.* --idempotency-key (\S+) within 24 hours/m.exec(err) ?? [];
    expect([code, keys.length > 0, keys.every((key) => key?.startsWith(`${named}-`))], err).to.deep.equal([
      3,
      true,
      true,
    ]);
    await get(['--idempotency-key', named, '--audio', 'https://a.example/1'], url, brief);
    expect(new Set(keys).size).to.equal(1);
  });

  it('names no key when the service was not reached or has refused the request', async () => {
    const told = await get(['https://a.example/1'], `http://127.0.0.1:${await freePort()}`, limits);
    expect([told.code, told.err.includes('--idempotency-key')], told.err).to.deep.equal([3, false]);
    answer = () => ({
      status: 402,
      headers: { 'x-error-code': 'payment_required' },
      body: '{"error":"Payment required"}',
    });
    expect(await get(['https://a.example/1'])).to.include({ code: 1, err: 'https://a.example/1: Payment required\n' });
  });

  it('tells what is refused in the words of its own options, and where a refused key comes from', async () => {
    // A service of another version may take other values.
    const error = 'Bad Request: video_format must be one of mp4, webm';
    answer = () => ({ status: 400, headers: { 'x-error-code': 'bad_request' }, body: JSON.stringify({ error }) });
    const told = await get(['https://a.example/1', '--format', 'mkv']);
    expect(told.err).to.equal('https://a.example/1: --format must be one of mp4, webm\n');
    answer = () => suspended;
    const { code, err } = await get(['https://a.example/1']);
    expect([code, err]).to.deep.equal([
      3,
      'https://a.example/1: Forbidden\nThe service refuses the key, which is that of TRAWL_API_KEY\n',
    ]);
  });

  it('waits longer once a job is accepted, then gives up', async () => {
    answer = (path) => (path.endsWith('/download') ? { status: 202, body: '{"job_id":"1"}' } : null);
    const countTries = () => paths.filter((path) => path.includes('/events')).length;
    // Each time is short once the server was asked as often as it should be: a busy machine may need seconds for that.
    const once = {
      ...limits,
      get firstMs() {
        return paths.length > 0 ? limits.firstMs : patient.firstMs;
      },
      get acceptedMs() {
        return countTries() > 2 ? limits.acceptedMs : patient.acceptedMs;
      },
    };
    const begun = performance.now();
    const { code, err } = await get(['https://a.example/1'], url, once);
    expect([code, performance.now() - begun >= limits.acceptedMs], err).to.deep.equal([3, true]);
    expect(err).to.contain('--idempotency-key');
    expect(countTries()).to.be.above(2);
  });

  it('waits for the first call with an Idempotency-Key while it runs, and repeats no call whose key has other parameters', async () => {
    const conflict = { status: 409, body: '{"error":"used"}', headers: { 'x-error-code': 'idempotency_conflict' } };
    const isSubmit = (path: string) => path.endsWith('/download');
    answer = () => conflict;
    const long = { ...patient, refusedMs: 1_500 };
    const other = await get(['https://a.example/1', '--idempotency-key', 'one'], url, long);
    expect([other.code, other.err, paths.filter(isSubmit).length]).to.deep.equal([1, 'https://a.example/1: used\n', 1]);
    const running = { ...conflict, headers: { ...conflict.headers, 'retry-after': '0' } };
    paths = [];
    answer = (path) => {
      if (!isSubmit(path)) return { status: 404, headers: { 'x-error-code': 'not_found' }, body: '{"error":"gone"}' };
      return paths.filter(isSubmit).length < 3 ? running : accepted;
    };
    const waited = await get(['https://a.example/1', '--idempotency-key', 'one']);
    expect([waited.err.includes('gone'), paths.filter(isSubmit).length], waited.err).to.deep.equal([true, 3]);
  });

  it('fails with the sentence of a rate limit that lasts, and with one of its own for a server that is no trawl', async () => {
    const tooMany = '{"error":"You have exceeded the per-minute rate limit on your subscription"}';
    answer = () => ({ status: 429, headers: { 'retry-after': '3600', 'x-error-code': 'rate_limited' }, body: tooMany });
    const limited = await get(['https://a.example/1']);
    expect([limited.code, limited.err]).to.deep.equal([
      1,
      'https://a.example/1: You have exceeded the per-minute rate limit on your subscription\n',
    ]);
    answer = () => ({ status: 404, body: '<html>' });
    const other = await get(['https://a.example/1']);
    expect([other.code, other.err]).to.deep.equal([
      1,
      'https://a.example/1: The address does not answer as trawl does (status 404)\n',
    ]);
  });

  it('cancels a job before it is charged when the service would ignore --start', async () => {
    answer = (path, method) => {
      if (path.endsWith('/download')) return accepted;
      return method === 'DELETE' ? jobOf('Error') : jobOf('QueuedJob');
    };
    const { code, err } = await get(['https://a.example/1', '--start', '3']);
    expect([code, err]).to.deep.equal([1, 'https://a.example/1: This service does not know start\n']);
    const ofJob = ['/v1/jobs/1?fields=status,args', '/v1/jobs/1?fields=status', '/v1/jobs/1?fields=status'];
    expect(paths).to.deep.equal(['/v1/video/download', ...ofJob]);
    let isCancelling = false;
    answer = (path, method) => {
      if (path.endsWith('/download')) return accepted;
      isCancelling ||= method === 'DELETE';
      return isCancelling ? null : jobOf('QueuedJob');
    };
    const unsure = await get(['https://a.example/1', '--start', '3'], url, {
      ...patient,
      get acceptedMs() {
        return isCancelling ? 0 : patient.acceptedMs;
      },
    });
    expect([unsure.code, unsure.err.includes('--idempotency-key')], unsure.err).to.deep.equal([1, true]);
  });

  it('names the key when a call about an accepted job is refused', async () => {
    answer = (path) => (path.endsWith('/download') ? accepted : suspended);
    const { code, err } = await get(['https://a.example/1']);
    expect([code, err.includes('--idempotency-key')], err).to.deep.equal([3, true]);
    const limited = { status: 429, headers: { 'retry-after': '3600', 'x-error-code': 'rate_limited' }, body: '{}' };
    answer = (path) => (path.endsWith('/download') ? accepted : limited);
    const late = await get(['https://a.example/1', '--start', '3']);
    expect([late.code, late.err.includes('--idempotency-key')], late.err).to.deep.equal([1, true]);
  });

  it('names the key when a job completes while Ctrl-C cancels it', async () => {
    answer = (path, method) => {
      if (path.endsWith('/download')) return accepted;
      if (path.includes('/events')) return null;
      return method === 'DELETE' ? jobOf('CompletedJob') : jobOf('Running');
    };
    await expectInterrupted(': completed and charged before it could be cancelled\n');
  });

  it('says that a job may go on when nobody confirms on Ctrl-C that it is cancelled', async () => {
    answer = (path, method) => {
      // An id may not control the terminal.
      if (path.endsWith('/download')) return { status: 202, body: '{"job_id":"1\\u001b[2J"}' };
      return path.includes('/events') ? null : method === 'DELETE' ? suspended : jobOf('Running');
    };
    await expectInterrupted(': the service has not confirmed that job 1?[2J is cancelled\n');
  });

  /** Interrupts a command that waits for its job: it names the key, and says this of the job. */
  const expectInterrupted = async (sentence: string) => {
    const { folder, remove } = aFolder();
    const command = startCommand(['get', 'https://a.example/1'], folder, { TRAWL_API_URL: url, TRAWL_API_KEY: 'k' });
    try {
      await until(() => command.err().includes('service away'), 20, 'it waits for its job');
      command.process.kill('SIGINT');
      expect(await command.ended, command.err()).to.equal(130);
      expect(command.err()).to.contain('--idempotency-key').and.to.contain(sentence);
    } finally {
      command.process.kill('SIGKILL');
      await command.ended;
      remove();
    }
  };

  it('asks for no further playlist once the key is refused', async () => {
    let refusals = 1;
    answer = () => (refusals-- > 0 ? suspended : { status: 202, body: '{"batch_id":"b","jobs":[]}' });
    const { code, out } = await get(['https://a.example/1', 'https://a.example/2', '--playlist', '50', '--json']);
    const rows = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect([code, rows.map(({ query, job_id, error_code }) => [query, job_id, error_code])]).to.deep.equal([
      3,
      ['1', '2'].map((n) => [`https://a.example/${n}`, null, 'forbidden']),
    ]);
    expect(paths).to.deep.equal(['/v1/usage?view=reduced']);
  });

  it('takes each job of a playlist over all pages of its batch', async () => {
    const ended = JSON.stringify({ status: 'Error', progress: 0, args: {}, error: 'Private', error_code: 'private' });
    const page = (ids: readonly string[], next_cursor: string | null) =>
      JSON.stringify({ next_cursor, jobs: ids.map((id) => ({ query: `https://a.example/${id}`, job_id: id })) });
    answer = (path) => {
      if (path === '/v1/batches') return { status: 202, body: '{"batch_id":"b"}' };
      if (path.startsWith('/v1/usage')) return { status: 200, body: '{}' };
      if (path === '/v1/batches/b?cursor=c') return { status: 200, body: page(['3'], null) };
      if (path === '/v1/batches/b') return { status: 200, body: page(['1', '2'], 'c') };
      return { status: 200, body: `id: 1\nevent: end\ndata: ${ended}\n\n` };
    };
    const { code, out } = await get(['https://a.example/list', '--playlist', '3', '--parallel', '1', '--json']);
    const rows = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect([code, rows.map(({ query, job_id, error_code }) => [query, job_id, error_code])]).to.deep.equal([
      1,
      ['1', '2', '3'].map((id) => [`https://a.example/${id}`, id, 'private']),
    ]);
    answer = (path) =>
      path === '/v1/batches'
        ? { status: 404, headers: { 'x-error-code': 'not_found' }, body: '{"error":"Not Found"}' }
        : { status: 200, body: '{}' };
    const older = await get(['https://a.example/list', '--playlist', '3']);
    expect([older.code, older.err]).to.deep.equal([
      1,
      'https://a.example/list: This service does not expand playlists\n',
    ]);
  });

  it('refuses a wrong command line before it asks for anything', async () => {
    const wrong = [
      [],
      ['https://a.example/1', '--start', '5', '--end', '4'],
      ['https://a.example/1', '--start', '5', '--max-duration', '4'],
      ['https://a.example/1', '--parallel', '0'],
      ['https://a.example/1', '--no-such-option'],
      ['https://a.example/1', '--quality', '9k'],
      ['https://a.example/1', '--quality', '128kbps'],
      ['https://a.example/1', '--audio', '--format', 'mp4'],
      ['https://a.example/1', '--idempotency-key', 'ä'],
      ['https://a.example/1', '--idempotency-key', 'k'.repeat(201)],
      ['https://a.example/1', 'https://a.example/2', '--output', 'one.mp4'],
    ];
    for (const args of wrong) expect((await get(args)).code, args.join(' ')).to.equal(2);
    expect(paths).to.deep.equal([]);
  });
});
