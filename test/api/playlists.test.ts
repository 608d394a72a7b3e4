import { expect } from 'chai';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { type ApiCaller, aFilm, startApi, type TestApi } from '../support/api.ts';
import { expectRefused } from '../support/calls.ts';
import { aDownload, admitted } from '../support/record.ts';

const query = 'https://example.com/list';
const entries = Array.from({ length: 5 }, (_, n) => `https://example.com/film-${n}.mp4`);

describe('a batch of a playlist', () => {
  let api: TestApi;
  let asked: object[];
  before(async () => {
    api = await startApi();
  });
  after(() => api.stop());
  beforeEach(() => {
    asked = [];
    lists(() => ({ entries }));
  });

  /** Sets what the inspector answers, which takes so many entries as it is asked for. */
  const lists = (answer: () => { entries: string[] } | object) =>
    api.inspect((_, question) => {
      asked.push(question);
      const said = answer();
      return 'entries' in said ? { entries: said.entries.slice(0, Number(question.maxEntries)) } : said;
    });
  const post = (caller: ApiCaller, body: object = {}, headers: Record<string, string> = {}) => {
    const whole = { endpoint: 'audio', playlist: true, items: [{ query, audio_format: 'm4a' }], ...body };
    return api.call('POST', '/v1/batches', { key: caller.key, body: whole, headers });
  };
  const heldOf = async ({ account }: ApiCaller) => (await readSnapshot(api.store, account)).balances.held;

  it('has a job for each entry, in its order and with the parameters of the playlist', async () => {
    const caller = await api.addCaller({ perMinute: 20 });
    const made = await post(caller);
    expect([made.status, made.headers.get('x-credits-held')]).to.deep.equal([202, '5']);
    expect(made.headers.get('ratelimit')).to.match(/r=19;/);
    expect(asked).to.deep.equal([{ url: query, maxEntries: 1_000, account: caller.account }]);
    const { jobs } = (await api.get(`/v1/batches/${made.json.batch_id}`, caller.key)).json;
    expect(jobs.map((job: { query: string }) => job.query)).to.deep.equal(entries);
    const job = (await api.get(`/v1/jobs/${jobs[0].job_id}`, caller.key)).json;
    expect([job.endpoint, job.args.audio_format]).to.deep.equal(['/v1/audio/download', 'm4a']);
  });

  it('takes the first max_items entries, and is refused with more entries than max_credits', async () => {
    const caller = await api.addCaller({ credits: 4 });
    expectRefused(
      await post(caller, { max_credits: 4 }),
      400,
      'bad_request',
      /max_credits is 4, but the playlist has 5/,
    );
    expectRefused(await post(caller), 402, 'payment_required', /./);
    expect(await heldOf(caller)).to.equal(0);
    const made = await post(caller, { max_items: 4, max_credits: 4 });
    expect([made.status, await heldOf(caller)]).to.deep.equal([202, 4]);
  });

  it('has no list read that its caller could not pay for, or that is known from the same Idempotency-Key', async () => {
    const [poor, busy] = [await api.addCaller({ credits: 0 }), await api.addCaller({ max_open: 1 })];
    expectRefused(await post(poor), 402, 'payment_required', /./);
    await admitted(api.store, { ...busy, accountId: busy.account }, { work: aDownload });
    expectRefused(await post(busy), 429, 'rate_limited', /open-jobs/);
    expect(asked).to.deep.equal([]);
    const caller = await api.addCaller();
    const key = { 'idempotency-key': 'list-1' };
    const [first, again] = [await post(caller, {}, key), await post(caller, {}, key)];
    expect([again.status, again.json]).to.deep.equal([202, first.json]);
    expect(asked).to.have.length(1);
    expectRefused(await post(caller, { max_items: 2 }, key), 409, 'idempotency_conflict', /other parameters/);
    expect([asked.length, await heldOf(caller)]).to.deep.equal([1, 5]);
  });

  it('of two calls with one Idempotency-Key at the same moment is one batch', async () => {
    const caller = await api.addCaller();
    const both = Promise.withResolvers<void>();
    api.inspect(async () => {
      asked.push({});
      if (asked.length === 2) both.resolve();
      await both.promise;
      return { entries };
    });
    const key = { 'idempotency-key': 'list-2' };
    const [first, second] = await Promise.all([post(caller, {}, key), post(caller, {}, key)]);
    expect([first.status, second.status, second.json]).to.deep.equal([202, 202, first.json]);
    expect(await heldOf(caller)).to.equal(5);
  });

  it('fails as its page does, and holds nothing', async () => {
    const caller = await api.addCaller();
    const failures: [object, number, string, RegExp][] = [
      [{ failure: { code: 'deleted', text: 'This content does not exist' } }, 404, 'not_found', /does not exist/],
      [{ failure: { code: 'private', text: 'This content is private' } }, 400, 'bad_request', /content is private/],
      [{ failure: { code: 'source_error', text: 'It answers 500' } }, 500, 'internal_error', /answers 500/],
      [{ failure: { code: 'unsupported_url', text: 'No' } }, 400, 'bad_request', /query cannot be used: No/],
      [{ entries: [] }, 400, 'bad_request', /has no entries/],
      [{ entries: ['http://127.0.0.1/'] }, 400, 'bad_request', /has no entries/],
      [{ status: 404 }, 503, 'unavailable', /./],
      [{ status: 503 }, 503, 'unavailable', /./],
      [{ status: 429 }, 429, 'rate_limited', /./],
      [{ metadata: aFilm }, 500, 'internal_error', /./],
    ];
    for (const [said, status, code, sentence] of failures) {
      lists(() => said);
      expectRefused(await post(caller), status, code, sentence);
    }
    expect(await heldOf(caller)).to.equal(0);
  });

  it('starts nothing for a caller who has left while the list was read', async () => {
    const caller = await api.addCaller();
    const [reading, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    api.inspect(async (_, __, gone) => {
      reading.resolve();
      await gone;
      left.resolve();
      return { entries };
    });
    const said = api.lines.length;
    const leave = new AbortController();
    const body = JSON.stringify({ endpoint: 'audio', playlist: true, items: [{ query }] });
    const headers = { 'x-api-key': caller.key, 'content-type': 'application/json' };
    const asking = fetch(`${api.url}/v1/batches`, { method: 'POST', headers, body, signal: leave.signal });
    await reading.promise;
    leave.abort();
    await asking.catch(() => 'gone');
    await left.promise;
    lists(() => ({ entries }));
    expect((await post(caller, { max_items: 1 })).status).to.equal(202);
    expect(await heldOf(caller)).to.equal(1);
    expect(api.lines.slice(said).filter((line) => line.includes('"level":"error"'))).to.deep.equal([]);
  });

  it('is judged for its parameters before its list is read', async () => {
    const caller = await api.addCaller();
    const wrong = [
      { items: [{ query: 'x' }] },
      { items: [{ query, audio_format: 'x' }] },
      { max_items: 0 },
      { max_credits: 0 },
    ];
    for (const body of wrong) expectRefused(await post(caller, body), 400, 'bad_request', /./);
    expect(asked).to.deep.equal([]);
  });
});
