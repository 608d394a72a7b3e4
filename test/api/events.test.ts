import { expect } from 'chai';
import { makeJobWatches } from '../../src/api/job-watch.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import type { RecordStore } from '../../src/store/script.ts';
import { type Desk, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film, unknownId } from '../support/calls.ts';
import { failed, theJob } from '../support/record.ts';
import { openStream } from '../support/stream.ts';
import { until } from '../support/until.ts';
import { endJob, runJob } from '../support/work.ts';

const submitTo = async (api: TestApi, desk: Desk) =>
  String((await api.get('/v1/video/download', desk.key, { query: film })).json.job_id);

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

  const submit = (desk: Desk) => submitTo(api, desk);
  const open = (id: string, desk: Desk, headers = {}, rest = '') =>
    openStream(api, `/v1/jobs/${id}/events${rest}`, desk.key, headers);

  for (const path of ['/v1/jobs', '/api/v1/jobs']) {
    it(`D13: GET ${path}/{id}/events sends each change as progress and ends with end, each with its revision`, async () => {
      const desk = await api.desk();
      const id = await submit(desk);
      const stream = await openStream(api, `${path}/${id}/events`, desk.key);
      const { status, headers } = stream.response;
      expect([status, headers.get('content-type')]).to.deep.equal([200, 'text/event-stream; charset=utf-8']);
      expect([headers.get('cache-control'), headers.get('x-accel-buffering')]).to.deep.equal(['no-store', 'no']);
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
      expect(events.at(-1)?.data).to.deep.equal((await api.get(`/v1/jobs/${id}`, desk.key)).json);
      expect(all.slice(0, -1).map((seen) => seen?.event)).to.deep.equal(all.slice(1).map(() => 'progress'));
      const ids = all.map((seen) => Number(seen?.id));
      expect(ids).to.deep.equal([...new Set(ids)].sort((a, b) => a - b));
      expect(ids.at(-1)).to.equal((await theJob(api.store, id)).revision);
    });
  }

  for (const last of [undefined, '0', '1', '3', 'nonsense', '99999999999999999999']) {
    it(`D84: of an ended job are end alone, with Last-Event-ID ${last}`, async () => {
      const desk = await api.desk();
      const id = await submit(desk);
      await endJob(api.store, id, failed);
      const stream = await open(id, desk, last === undefined ? {} : { 'last-event-id': last });
      const { events } = await stream.rest();
      expect(events.map(({ event, data }) => [event, data.status])).to.deep.equal([['end', 'Error']]);
    });
  }

  it('go on after Last-Event-ID: the same revision is not sent again, what changed meanwhile is', async () => {
    const desk = await api.desk();
    const id = await submit(desk);
    const { revision } = await runJob(api.store, id);
    const stream = await open(id, desk, { 'last-event-id': String(revision) });
    const behind = await open(id, desk, { 'last-event-id': String(revision - 1) });
    expect((await behind.next())?.id).to.equal(String(revision));
    await runJob(api.store, id, { progress: 50 });
    const first = await stream.next();
    expect([first?.id, first?.data.progress]).to.deep.equal([String(revision + 1), 50]);
    await Promise.all([stream.leave(), behind.leave()]);
  });

  it('D9: fields reaches into each event', async () => {
    const desk = await api.desk();
    const id = await submit(desk);
    await endJob(api.store, id);
    const { events } = await (await open(id, desk, {}, '?fields=status,args.query')).rest();
    expect(events[0]?.data).to.deep.equal({ status: 'CompletedJob', args: { query: film } });
  });

  it("D14: of an unknown or another account's job are 404, of no UUID 400", async () => {
    const [desk, stranger] = [await api.desk(), await api.desk()];
    const id = await submit(desk);
    for (const wrong of [id, unknownId]) {
      expectRefused(await api.get(`/v1/jobs/${wrong}/events`, stranger.key), 404, 'not_found', 'Not Found');
    }
    expectRefused(await api.get('/v1/jobs/x/events', desk.key), 400, 'bad_request', 'Bad Request: id must be a UUID');
    const flag = await api.get(`/v1/jobs/${id}/events`, desk.key, { soft_fail: 'maybe' });
    expectRefused(flag, 400, 'bad_request', /^Bad Request: soft_fail/);
  });

  it('D77: HEAD answers as GET and ends', async () => {
    const desk = await api.desk();
    const { status, headers } = await api.call('HEAD', `/v1/jobs/${await submit(desk)}/events`, { key: desk.key });
    expect([status, headers.get('content-type')]).to.deep.equal([200, 'text/event-stream; charset=utf-8']);
  });

  it('are heard over one subscription for all who stream, which ends when they leave', async () => {
    const desk = await api.desk();
    const id = await submit(desk);
    const streams = [await open(id, desk), await open(id, desk)];
    for (const stream of streams) await stream.next();
    expect(await countListeners(api, id)).to.equal(1);
    for (const stream of streams) await stream.leave();
    await until(async () => (await countListeners(api, id)) === 0, 5, 'the end of the subscription');
    const later = await open(id, desk);
    await later.next();
    await runJob(api.store, id);
    expect((await later.next())?.event).to.equal('progress');
    await later.leave();
  });

  it('end when the record of the job is removed', async () => {
    const desk = await api.desk();
    const id = await submit(desk);
    const stream = await open(id, desk);
    await stream.next();
    // A change that nobody hears of until the record is gone.
    await api.store.connection.send(['DEL', `{trawl}:job:${id}`]);
    await api.store.connection.send(['PUBLISH', `{trawl}:changed:${id}`, id]);
    expect((await stream.rest()).events).to.deep.equal([]);
  });

  it('are logged when they begin, with the time to the first byte', async () => {
    const desk = await api.desk();
    const id = await submit(desk);
    const stream = await open(id, desk);
    await stream.next();
    const line = await until(
      async () => (await readLines(api.store, desk.account, 9)).find(({ endpoint }) => endpoint.endsWith('/events')),
      5,
      'the line',
    );
    expect(line).to.include({ endpoint: 'GET /v1/jobs/{id}/events', status: 200, credits: 0 });
    await stream.leave();
  });
});

describe('events without hints', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi({}, (parts) => ({ ...parts, store: deaf(parts.store), rereadMs: 100 }));
  });
  after(() => api.stop());

  it('invariant 5: a stream still finds every change and the end', async () => {
    const desk = await api.desk();
    const id = await submitTo(api, desk);
    const stream = await openStream(api, `/v1/jobs/${id}/events`, desk.key);
    expect((await stream.next())?.data.status).to.equal('QueuedJob');
    await runJob(api.store, id);
    expect((await stream.next())?.data.status).to.equal('Running');
    await endJob(api.store, id);
    const { events } = await stream.rest();
    expect(events.map(({ event }) => event)).to.deep.equal(['end']);
  });

  it('a stream without news says that it lives', async () => {
    const desk = await api.desk();
    const id = await submitTo(api, desk);
    const { revision } = await theJob(api.store, id);
    const stream = await openStream(api, `/v1/jobs/${id}/events`, desk.key, { 'last-event-id': String(revision) });
    await endJob(api.store, id);
    expect((await stream.rest()).notes).to.include(':');
  });

  it('invariant 5: a poll that waits still finds the end', async () => {
    const desk = await api.desk();
    const id = await submitTo(api, desk);
    await runJob(api.store, id);
    const call = api.get(`/v1/jobs/${id}`, desk.key, { wait: '30' });
    await endJob(api.store, id);
    expect((await call).json.status).to.equal('CompletedJob');
  });
});

describe('events while the server drains', () => {
  it('streams are told to come back and end, polls that wait are answered, all within a second', async () => {
    const api = await startApi();
    const desk = await api.desk();
    const id = await submitTo(api, desk);
    const stream = await openStream(api, `/v1/jobs/${id}/events`, desk.key);
    await stream.next();
    const other = await submitTo(api, desk);
    const waits = api.get(`/v1/jobs/${other}`, desk.key, { wait: '30' });
    await until(async () => (await countListeners(api, other)) === 1, 5, 'the poll to wait');
    const began = performance.now();
    await api.stop();
    const { events, notes } = await stream.rest();
    expect([events, notes]).to.deep.equal([[], ['retry: 1000']]);
    expect((await waits).json.status).to.equal('QueuedJob');
    expect(performance.now() - began).to.be.below(1500);
  });

  it('a watch that was closed, or whose server drains, lets nobody wait', async () => {
    const draining = new AbortController();
    const store = { connection: { subscribe: async () => async () => {} } } as unknown as RecordStore;
    const watchJob = makeJobWatches(store, draining.signal);
    const [closed, drained] = [await watchJob('a'), await watchJob('b')];
    closed.close();
    draining.abort();
    await Promise.all([closed.changed(60_000), drained.changed(60_000)]);
    expect(await watchJob('c').catch(({ code }) => code)).to.equal('unavailable');
    drained.close();
  });
});
