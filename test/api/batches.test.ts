import { request } from 'node:http';
import { expect } from 'chai';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film, unknownId } from '../support/calls.ts';
import { endJob } from '../support/job-steps.ts';
import { sendRaw } from '../support/raw-http.ts';
import { completed } from '../support/record.ts';
import { until } from '../support/until.ts';

describe('batches', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi({ TRAWL_AUTH_FAILURES: '1000000' });
  });
  after(() => api.stop());

  const post = (caller: ApiCaller, body: unknown, headers: Record<string, string> = {}) =>
    api.call('POST', '/v1/batches', { key: caller.key, body, headers });
  const films = (count: number) => Array.from({ length: count }, (_, n) => ({ query: `${film}?n=${n}` }));
  const heldOf = async ({ account }: ApiCaller) => (await readSnapshot(api.store, account)).balances.held;

  it('starts a job for each item, shows them in their order in pages, and cancels what is open', async () => {
    const caller = await api.addCaller({ credits: 200 });
    const items = films(101);
    const made = await post(caller, { endpoint: 'audio', items, max_credits: 101 });
    expect([made.status, Object.keys(made.json), made.headers.get('x-credits-held')]).to.deep.equal([
      202,
      ['batch_id'],
      '101',
    ]);
    const path = `/v1/batches/${made.json.batch_id}`;
    expect(made.headers.get('location')).to.equal(path);
    const first = (await api.get(path, caller.key)).json;
    expect([first.jobs.length, first.next_cursor]).to.deep.equal([100, '100']);
    const second = (await api.get(path, caller.key, { cursor: first.next_cursor })).json;
    expect([second.jobs.length, second.next_cursor]).to.deep.equal([1, null]);
    const jobs = [...first.jobs, ...second.jobs];
    expect(jobs.map(({ query }) => query)).to.deep.equal(items.map(({ query }) => query));
    await endJob(api.store, jobs[0].job_id, completed);
    const endpoints = (await readLines(api.store, caller.account, 9)).map(({ endpoint }) => endpoint);
    expect(endpoints).to.include('POST /v1/audio/download');
    const cancelled = (await api.call('DELETE', path, { key: caller.key })).json;
    const wanted = {
      status: 'Cancelled',
      counts: { queued: 0, running: 0, completed: 1, failed: 100 },
      credits: { held: 0, charged: 1 },
    };
    expect(cancelled).to.deep.include(wanted);
    expect(cancelled.jobs[0]).to.deep.include({ status: 'CompletedJob', error: null, error_code: null });
    expect(cancelled.jobs[1]).to.deep.include({ status: 'Error', error: 'Cancelled', error_code: 'cancelled' });
    expect((await api.call('DELETE', path, { key: caller.key })).json).to.deep.equal(cancelled);
    expect(await heldOf(caller)).to.equal(0);
  });

  it('D12: the same Idempotency-Key gives the same batch, and 409 for other items or limits', async () => {
    const caller = await api.addCaller({ credits: 20 });
    const key = { 'idempotency-key': 'batch-1' };
    const body = { endpoint: 'video', items: films(3) };
    const [first, again] = [await post(caller, body, key), await post(caller, body, key)];
    expect([again.status, again.json]).to.deep.equal([202, first.json]);
    for (const other of [{ items: films(2) }, { max_credits: 5 }, { max_items: 5 }]) {
      const refused = await post(caller, { ...body, ...other }, key);
      expectRefused(refused, 409, 'idempotency_conflict', /other parameters/);
    }
    expect(await heldOf(caller)).to.equal(3);
  });

  it('D10 D12: an Idempotency-Key of a batch is 409 with items that are wrong, and one that is not in use 400', async () => {
    const caller = await api.addCaller({ credits: 20 });
    const ask = (name: string, items: unknown) =>
      post(caller, { endpoint: 'video', items }, { 'idempotency-key': name });
    const { json } = await ask('used', films(3));
    for (const wrong of [[{ query: 'x' }], [], films(1001)])
      expectRefused(await ask('used', wrong), 409, 'idempotency_conflict', /other parameters/);
    expectRefused(await ask('new', [{ query: 'x' }]), 400, 'bad_request', /^Bad Request: items/);
    expect((await ask('new', films(2))).status).to.equal(202);
    expect((await ask('used', films(3))).json).to.deep.equal(json);
    expect(await heldOf(caller)).to.equal(5);
  });

  it('D10 D76: a suspended account gets the first answer of a batch that it repeats, as of any call, and 403 for another one', async () => {
    const caller = await api.addCaller({ credits: 20 });
    const repeat = { 'idempotency-key': 'batch-1' };
    const [body, call] = [{ endpoint: 'video', items: films(3) }, { query: film }];
    const single = () =>
      api.call('POST', '/v1/video/download', {
        ...{ key: caller.key, body: call },
        headers: { 'idempotency-key': 'one' },
      });
    const [batch, job] = [await post(caller, body, repeat), await single()];
    await setAccount(api.store, caller.account, { suspended: true });
    expect((await single()).json).to.deep.equal(job.json);
    const again = await post(caller, body, repeat);
    expect([again.status, again.json]).to.deep.equal([202, batch.json]);
    expectRefused(await post(caller, { ...body, items: films(2) }, repeat), 409, 'idempotency_conflict', /other param/);
    expectRefused(await post(caller, body), 403, 'forbidden', 'Forbidden');
    expectRefused(await post(caller, '{', { 'idempotency-key': 'new' }), 403, 'forbidden', 'Forbidden');
    expect(await heldOf(caller)).to.equal(4);
  });

  it('D10: a batch of a suspended account without an Idempotency-Key, which repeats nothing, is 403 before its body has come', async () => {
    const caller = await api.addCaller({ credits: 1 });
    await setAccount(api.store, caller.account, { suspended: true });
    const json = 'Content-Type: application/json\r\nContent-Length: 99\r\nConnection: close';
    const { text } = await sendRaw(
      api.url,
      `POST /v1/batches HTTP/1.1\r\nHost: x\r\nx-api-key: ${caller.key}\r\n${json}\r\n\r\n`,
    );
    expect(text).to.match(/^HTTP\/1\.1 403 /);
  });

  it('refuses a batch as a whole, names the place of the first wrong item, and holds nothing', async () => {
    const caller = await api.addCaller({ credits: 5 });
    const wrong: [unknown, string][] = [
      [{ endpoint: 'video', items: [...films(2), { query: 'x' }] }, 'Bad Request: items[2]: query must be'],
      [{ endpoint: 'video', items: [1] }, 'Bad Request: items[0] must be an object'],
      [{ endpoint: 'video', items: [] }, 'Bad Request: items must be a list of 1 to 1000 objects'],
      [{ endpoint: 'video', items: films(1001) }, 'Bad Request: items must be a list of 1 to 1000 objects'],
      [{ endpoint: 'video' }, 'Bad Request: items must be a list of 1 to 1000 objects'],
      [{ items: films(1) }, 'Bad Request: endpoint'],
      [{ endpoint: 'video', items: films(2), max_credits: 1 }, 'Bad Request: max_credits is 1, but there are 2 items'],
      [{ endpoint: 'video', items: films(2), playlist: true }, 'Bad Request: items must be a list of the one playlist'],
      [{ endpoint: 'video', items: films(2), max_items: 1 }, 'Bad Request: max_items is 1, but there are 2 items'],
    ];
    for (const [body, sentence] of wrong) {
      const answer = await post(caller, body);
      expectRefused(answer, 400, 'bad_request', /./);
      expect(answer.json.error.startsWith(sentence), answer.json.error).to.equal(true);
    }
    expectRefused(await post(caller, { endpoint: 'video', items: films(6) }), 402, 'payment_required', /./);
    expect(await heldOf(caller)).to.equal(0);
    expect((await post(caller, { endpoint: 'video', items: films(5) })).status).to.equal(202);
  });

  it('reads a body of up to 2 MiB, and only after the key was judged', async () => {
    const caller = await api.addCaller({ credits: 1_000 });
    const items = films(1_000).map((item) => ({ ...item, padding: 'x'.repeat(2_000) }));
    expect((await post(caller, { endpoint: 'metadata', items })).status).to.equal(202);
    expect(await heldOf(caller)).to.equal(1_000);
    const large = { endpoint: 'video', items: [{ query: film, padding: 'x'.repeat(2 * 1024 * 1024) }] };
    expectRefused(await post(caller, large), 413, 'payload_too_large', /./);
    // The body of this request never comes.
    const status = await new Promise((resolve, reject) => {
      const asked = request(`${api.url}/v1/batches`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'content-length': '1000', 'x-api-key': 'wrong' },
      });
      asked.on('response', (res) => {
        resolve(res.statusCode);
        asked.destroy();
      });
      asked.on('error', reject);
      asked.flushHeaders();
    });
    expect(status).to.equal(401);
  });

  it('reads eight large bodies of an account at the same time, and refuses the next one until one has gone, but no small one', async () => {
    const caller = await api.addCaller();
    const headers = { 'content-type': 'application/json', 'content-length': '20000', 'x-api-key': caller.key };
    const waiting = Array.from({ length: 8 }, () => {
      const asked = request(`${api.url}/v1/batches`, { method: 'POST', headers });
      asked.on('error', () => {});
      asked.flushHeaders();
      return asked;
    });
    const small = { endpoint: 'video', items: films(1) };
    const large = { ...small, padding: 'x'.repeat(17_000) };
    const isFull = async () => (await post(caller, large)).status === 429;
    await until(isFull, 5, 'eight bodies are read');
    expect((await post(caller, small)).status).to.equal(202);
    waiting[0]?.destroy();
    await until(async () => !(await isFull()), 5, 'a body may be read again');
    for (const asked of waiting) asked.destroy();
  });

  it('counts once against the rate of the plan, however many items it has', async () => {
    const caller = await api.addCaller({ credits: 50, perMinute: 3 });
    expect((await post(caller, { endpoint: 'video', items: films(20) })).headers.get('ratelimit')).to.match(/r=2;/);
    expect((await post(caller, { endpoint: 'video', items: [] })).status).to.equal(400);
    expect((await post(caller, { endpoint: 'video', items: films(1) })).status).to.equal(202);
    expectRefused(await post(caller, { endpoint: 'video', items: films(1) }), 429, 'rate_limited', /per-minute/);
  });

  it('D14: a batch of another account is unknown, and an id that is no UUID is 400', async () => {
    const [owner, other] = [await api.addCaller(), await api.addCaller()];
    const { batch_id } = (await post(owner, { endpoint: 'video', items: films(1) })).json;
    for (const method of ['GET', 'DELETE']) {
      for (const id of [batch_id, unknownId]) {
        expectRefused(await api.call(method, `/v1/batches/${id}`, { key: other.key }), 404, 'not_found', 'Not Found');
      }
      expectRefused(await api.call(method, '/v1/batches/x', { key: other.key }), 400, 'bad_request', /UUID/);
    }
    expectRefused(await api.get(`/v1/batches/${batch_id}`, owner.key, { cursor: 'x' }), 400, 'bad_request', /cursor/);
  });
});
