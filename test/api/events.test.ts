import { expect } from 'chai';
import { makeJobWatches } from '../../src/api/job-watch.ts';
import { setKey } from '../../src/store/accounts/set-key.ts';
import { keys } from '../../src/store/keys.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import type { RecordStore } from '../../src/store/script.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film, unknownId } from '../support/calls.ts';
import { openEventStream } from '../support/event-stream.ts';
import { endJob, runJob } from '../support/job-steps.ts';
import { failed, theJob } from '../support/record.ts';
import { timed } from '../support/turn-length.ts';
import { until } from '../support/until.ts';

/** A proxy that compresses a stream keeps back the end of each event until the next one. */
const uncompressed = 'no-store, no-transform';
const submitTo = async (api: TestApi, caller: ApiCaller) =>
  String((await api.get('/v1/video/download', caller.key, { query: film })).json.job_id);

async function countListeners(api: TestApi, id: string): Promise<number> {
  const channel = `{trawl}:changed:${id}`;
  const reply = await api.redis.connection.send(['PUBSUB', 'NUMSUB', channel]);
  return Number((reply as unknown[])[1]);
}

/** The same record, whose hints are all lost. */
function deaf(store: RecordStore): RecordStore {
  return { ...store, connection: { ...store.connection, subscribe: async () => async () => {} } };
}

describe('the events of a job', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.stop());

  const submit = (caller: ApiCaller) => submitTo(api, caller);
  const open = (id: string, caller: ApiCaller, headers = {}, rest = '') =>
    openEventStream(api, `/v1/jobs/${id}/events${rest}`, caller.key, headers);

  for (const path of ['/v1/jobs', '/api/v1/jobs']) {
    it(`D13: GET ${path}/{id}/events sends each change as progress and ends with end, each with its revision`, async () => {
      const caller = await api.addCaller();
      const id = await submit(caller);
      const stream = await openEventStream(api, `${path}/${id}/events`, caller.key);
      const { status, headers } = stream.response;
      expect([status, headers.get('content-type')]).to.deep.equal([200, 'text/event-stream; charset=utf-8']);
      expect([headers.get('cache-control'), headers.get('x-accel-buffering')]).to.deep.equal([uncompressed, 'no']);
      const first = await stream.next();
      expect([first?.event, first?.data.status, first?.data.queue.position]).to.deep.equal([
        'progress',
        'QueuedJob',
        1,
      ]);
      await runJob(api.store, id, { progress: 30 });
      const running = [];
      for (let seen = await stream.next(); ; seen = await stream.next()) {
        running.push(seen);
        if (seen?.data.progress === 30) break;
      }
      await endJob(api.store, id);
      const { events } = await stream.rest();
      const all = [first, ...running, ...events];
      expect(events.at(-1)?.event).to.equal('end');
      expect(events.at(-1)?.data).to.deep.equal((await api.get(`/v1/jobs/${id}`, caller.key)).json);
      expect(all.slice(0, -1).map((seen) => seen?.event)).to.deep.equal(all.slice(1).map(() => 'progress'));
      const ids = all.map((seen) => Number(seen?.id));
      expect(ids).to.deep.equal([...new Set(ids)].sort((a, b) => a - b));
      expect(ids.at(-1)).to.equal((await theJob(api.store, id)).revision);
      await until(async () => (await countListeners(api, id)) === 0, 5, 'its subscription ends with it');
    });
  }

  for (const last of [undefined, '0', '1', '3', 'nonsense', '99999999999999999999']) {
    it(`D84: of an ended job are one end event, with Last-Event-ID ${last}`, async () => {
      const caller = await api.addCaller();
      const id = await submit(caller);
      await endJob(api.store, id, failed);
      const stream = await open(id, caller, last === undefined ? {} : { 'last-event-id': last });
      const { events } = await stream.rest();
      expect(events.map(({ event, data }) => [event, data.status])).to.deep.equal([['end', 'Error']]);
    });
  }

  it('after Last-Event-ID begin with the first later revision', async () => {
    const caller = await api.addCaller();
    const id = await submit(caller);
    const { revision } = await runJob(api.store, id);
    const stream = await open(id, caller, { 'last-event-id': String(revision) });
    const behind = await open(id, caller, { 'last-event-id': String(revision - 1) });
    expect((await behind.next())?.id).to.equal(String(revision));
    await runJob(api.store, id, { progress: 50 });
    const first = await stream.next();
    expect([first?.id, first?.data.progress]).to.deep.equal([String(revision + 1), 50]);
    await Promise.all([stream.cancel(), behind.cancel()]);
  });

  it('D9: of a stream with fields have the named fields alone', async () => {
    const caller = await api.addCaller();
    const id = await submit(caller);
    await endJob(api.store, id);
    const { events } = await (await open(id, caller, {}, '?fields=status,args.query')).rest();
    expect(events[0]?.data).to.deep.equal({ status: 'CompletedJob', args: { query: film } });
  });

  it("D14: of an unknown or another account's job are 404, of no UUID 400", async () => {
    const [caller, stranger] = [await api.addCaller(), await api.addCaller()];
    const id = await submit(caller);
    for (const wrong of [id, unknownId]) {
      expectRefused(await api.get(`/v1/jobs/${wrong}/events`, stranger.key), 404, 'not_found', 'Not Found');
    }
    expectRefused(await api.get('/v1/jobs/x/events', caller.key), 400, 'bad_request', 'Bad Request: id must be a UUID');
    const flag = await api.get(`/v1/jobs/${id}/events`, caller.key, { soft_fail: 'maybe' });
    expectRefused(flag, 400, 'bad_request', /^Bad Request: soft_fail/);
  });

  it('key-deactivate: tell nothing more once their key is deactivated', async () => {
    const caller = await api.addCaller();
    const id = await submit(caller);
    const stream = await open(id, caller);
    await stream.next();
    await setKey(api.store, caller.account, `k${caller.keyId}`, { active: false });
    await endJob(api.store, id);
    expect((await stream.rest()).events).to.deep.equal([]);
  });

  it('key-deactivate: a poll that waits is refused at the end of the job once its key is deactivated', async () => {
    const caller = await api.addCaller();
    const id = await submit(caller);
    const polled = api.get(`/v1/jobs/${id}`, caller.key, { wait: '30' });
    await until(async () => (await countListeners(api, id)) === 1, 5, 'the poll to wait');
    await setKey(api.store, caller.account, `k${caller.keyId}`, { active: false });
    await endJob(api.store, id);
    expectRefused(await polled, 401, 'inactive_api_key', 'Inactive API Key');
  });

  it('D77: have the headers of a stream and no body for HEAD', async () => {
    const caller = await api.addCaller();
    const { status, headers } = await api.call('HEAD', `/v1/jobs/${await submit(caller)}/events`, { key: caller.key });
    expect([status, headers.get('content-type')]).to.deep.equal([200, 'text/event-stream; charset=utf-8']);
  });

  it('come over one subscription for all streams of a job, which ends with the last stream', async () => {
    const caller = await api.addCaller();
    const id = await submit(caller);
    const streams = [await open(id, caller), await open(id, caller)];
    for (const stream of streams) await stream.next();
    expect(await countListeners(api, id)).to.equal(1);
    for (const stream of streams) await stream.cancel();
    await until(async () => (await countListeners(api, id)) === 0, 5, 'the end of the subscription');
    const later = await open(id, caller);
    await later.next();
    await runJob(api.store, id);
    expect((await later.next())?.event).to.equal('progress');
    await later.cancel();
  });

  it('end when the record of the job is removed', async () => {
    const caller = await api.addCaller();
    const id = await submit(caller);
    const stream = await open(id, caller);
    await stream.next();
    // A change that nobody hears of until the record is gone.
    await api.store.connection.send(['DEL', `{trawl}:job:${id}`]);
    await api.store.connection.send(['PUBLISH', `{trawl}:changed:${id}`, id]);
    expect((await stream.rest()).events).to.deep.equal([]);
  });

  it('are logged when their stream begins', async () => {
    const caller = await api.addCaller();
    const id = await submit(caller);
    const stream = await open(id, caller);
    await stream.next();
    const line = await until(
      async () => (await readLines(api.store, caller.account, 9)).find(({ endpoint }) => endpoint.endsWith('/events')),
      5,
      'the line',
    );
    expect(line).to.include({ endpoint: 'GET /v1/jobs/{id}/events', status: 200, credits: 0 });
    await stream.cancel();
  });
});

describe('events without hints', () => {
  const unreadMs = 300;
  let api: TestApi;
  before(async () => {
    api = await startApi({}, (parts) => ({ ...parts, store: deaf(parts.store), rereadMs: 100, unreadMs }));
  });
  after(() => api.stop());

  it('invariant 5: a stream still sends every change and the end', async () => {
    const caller = await api.addCaller();
    const id = await submitTo(api, caller);
    const stream = await openEventStream(api, `/v1/jobs/${id}/events`, caller.key);
    expect((await stream.next())?.data.status).to.equal('QueuedJob');
    await runJob(api.store, id);
    // A look between two changes tells of the first one alone.
    const told: unknown[] = [];
    while (told.at(-1) !== 'Running') told.push((await stream.next())?.data.status);
    expect(
      told.slice(0, -1).every((status) => status === 'QueuedJob'),
      told.join(),
    ).to.equal(true);
    await endJob(api.store, id);
    const { events } = await stream.rest();
    expect(events.map(({ event }) => event)).to.deep.equal(['end']);
  });

  it('a stream without a change sends a comment that keeps it alive', async () => {
    const caller = await api.addCaller();
    const id = await submitTo(api, caller);
    const { revision } = await theJob(api.store, id);
    const stream = await openEventStream(api, `/v1/jobs/${id}/events`, caller.key, {
      'last-event-id': String(revision),
    });
    await endJob(api.store, id);
    expect((await stream.rest()).notes).to.include(':');
  });

  it('a stream whose caller reads lasts longer than the time limit of one whose caller does not', async () => {
    const caller = await api.addCaller();
    const id = await submitTo(api, caller);
    const stream = await openEventStream(api, `/v1/jobs/${id}/events`, caller.key);
    const began = performance.now();
    await until(() => performance.now() - began > 3 * unreadMs, 10, 'the time limit has passed three times');
    await endJob(api.store, id);
    const { events } = await stream.rest();
    expect(events.at(-1)?.event).to.equal('end');
  });

  it('invariant 5: a poll that waits still answers at the end of the job', async () => {
    const caller = await api.addCaller();
    const id = await submitTo(api, caller);
    await runJob(api.store, id);
    const call = api.get(`/v1/jobs/${id}`, caller.key, { wait: '30' });
    await endJob(api.store, id);
    expect((await call).json.status).to.equal('CompletedJob');
  });
});

describe('events while the server drains', () => {
  it('streams send retry and end, and polls that wait are answered, all within 1.5 s', async () => {
    const api = await startApi();
    const caller = await api.addCaller();
    const id = await submitTo(api, caller);
    const stream = await openEventStream(api, `/v1/jobs/${id}/events`, caller.key);
    await stream.next();
    const other = await submitTo(api, caller);
    const waits = api.get(`/v1/jobs/${other}`, caller.key, { wait: '30' });
    await until(async () => (await countListeners(api, other)) === 1, 5, 'the poll to wait');
    const told = timed(Promise.all([stream.rest(), waits]));
    await api.stop();
    const { answer, seconds } = await told;
    const [{ events, notes }, poll] = answer;
    expect([events, notes]).to.deep.equal([[], ['retry: 1000']]);
    expect(poll.json.status).to.equal('QueuedJob');
    expect(seconds).to.be.below(1.5);
  });

  it('a poll that has waited shows the position of its job after the wait', async () => {
    const api = await startApi();
    const caller = await api.addCaller();
    const [first, second] = [await submitTo(api, caller), await submitTo(api, caller)];
    const poll = api.get(`/v1/jobs/${second}`, caller.key, { wait: '30' });
    await until(async () => (await countListeners(api, second)) === 1, 5, 'the poll to wait');
    await api.call('DELETE', `/v1/jobs/${first}`, { key: caller.key });
    await api.stop();
    expect((await poll).json.queue.position).to.equal(1);
  });

  it('a new watch never reads an older job than its caller has read, although the hint of the change was lost', async () => {
    const api = await startApi();
    const caller = await api.addCaller();
    const id = await submitTo(api, caller);
    const watchJob = makeJobWatches(api.store, { rereadMs: 60_000, draining: new AbortController().signal });
    const job = { id, account: caller.account, revision: 1 };
    const first = await watchJob(job);
    expect((await first.read())?.job.revision).to.equal(1);
    await api.redis.connection.send(['HSET', keys.job(id), 'revision', '2']);
    const second = await watchJob({ ...job, revision: 2 });
    expect((await second.read())?.job.revision).to.equal(2);
    for (const watch of [first, second]) watch.close();
    await api.stop();
  });
});
