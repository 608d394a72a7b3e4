import { symlinkSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect } from 'chai';
import { runCommand as runAdmin } from '../../src/admin/admin.ts';
import { retryJob } from '../../src/store/jobs/retry-job.ts';
import { recordFolder } from '../../src/store/open-store.ts';
import { sweepRecord } from '../../src/store/sweep-record.ts';
import { endWebhook } from '../../src/store/webhooks/end-webhook.ts';
import { takeWebhook } from '../../src/store/webhooks/take-webhook.ts';
import { type ApiCaller, aFilm, startApi, type TestApi } from '../support/api.ts';
import { film } from '../support/calls.ts';
import { openEventStream } from '../support/event-stream.ts';
import { endJob, runJob } from '../support/job-steps.ts';
import type { Json } from '../support/json.ts';
import { completed, failed, holder, startNext, theJob } from '../support/record.ts';
import { aFolder } from '../support/redis.ts';
import { RedisCalls } from '../support/redis-calls.ts';
import { readWebhook } from '../support/stored-job.ts';

const day = 86_400_000;
const hook = 'https://example.com/hook';
const metadata = { ...aFilm, description: 'Zeile eins\n"\u7535\u5f71" \u{1f3ac} '.repeat(60) };

describe('a job that has ended', () => {
  let api: TestApi;
  let caller: ApiCaller;
  const calls = new RedisCalls();
  const data = aFolder();
  const TRAWL_SECRET = Buffer.alloc(32).toString('base64');
  before(async () => {
    calls.begin();
    api = await startApi({ TRAWL_SECRET }, (parts) => {
      return { ...parts, store: { ...parts.store, connection: calls.through(parts.store.connection) } };
    });
    caller = await api.addCaller();
    // Where the commands of an operator look for the record of a running trawl up.
    symlinkSync(dirname(api.redis.url.replace(/^unix:\/\/[^/]*/, '')), recordFolder(data.folder));
  });
  after(async () => {
    calls.end();
    await api.stop();
    data.remove();
  });

  const submit = async (params: Record<string, string> = {}) => {
    const { json } = await api.get('/v1/video/download', caller.key, { query: film, ...params });
    api.store.advance(1);
    return String(json.job_id);
  };
  const deliver = (id: string) => {
    const delivered = { ...completed.delivered!, key: `${id}/1/media.mp4` };
    return endJob(api.store, id, { ...completed, metadata, delivered });
  };
  const admin = async (...line: string[]) => {
    let said = '';
    const out = (text: string) => {
      said += text;
    };
    const env = { TRAWL_DATA: data.folder, TRAWL_SECRET };
    expect(await runAdmin([...line, '--json'], { out, err: out, isWatched: false, env })).to.equal(0, said);
    return JSON.parse(said) as Json;
  };

  /** One job of each way to end. */
  const makers: Readonly<Record<string, () => Promise<string>>> = {
    'with a file': async () => {
      const id = await submit({ video_quality: '480p' });
      await runJob(api.store, id, { progress: 55 });
      return (await deliver(id)).id;
    },
    'with metadata alone': async () => {
      const { json } = await api.get('/v1/media/metadata', caller.key, { query: film, is_async: 'true' });
      const id = String(json.job_id);
      return (await endJob(api.store, id, { ...completed, metadata, delivered: null })).id;
    },
    'with a failure at its second attempt, and a webhook': async () => {
      const id = await submit({ webhook_url: hook, webhook_authorization: 'Bearer x' });
      const first = await runJob(api.store, id, { progress: 31 });
      const why = { counts: 'failure', code: 'source_error', text: 'The source said "no"', notBefore: 0 } as const;
      await retryJob(api.store, holder, first, why);
      while ((await theJob(api.store, id)).attempt < 2) await startNext(api.store);
      await endJob(api.store, id, { ...failed, reason: 'an end' });
      const { receiver = '' } = (await readWebhook(api.store, id)) ?? {};
      const due = { receiver, id };
      const attempt = (await takeWebhook(api.store, due, 20_000))?.attempt ?? 0;
      await endWebhook(api.store, due, attempt, { verdict: 'refused', status: null }, 5_000);
      return id;
    },
    'by its caller, before it began': async () => {
      const id = await submit();
      await api.call('DELETE', `/v1/jobs/${id}`, { key: caller.key });
      return id;
    },
  };
  const get = async (path: string, params: Record<string, string> = {}) => {
    const { status, json } = await api.get(path, caller.key, params);
    return [status, json];
  };
  const events = async (id: string) => {
    const stream = await openEventStream(api, `/v1/jobs/${id}/events`, caller.key);
    return (await stream.rest()).events;
  };
  /** Every answer that shows an ended job and changes nothing. */
  const readers: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
    poll: (id) => get(`/v1/jobs/${id}`),
    fields: (id) => get(`/v1/jobs/${id}`, { fields: 'id,result.metadata.title,args.query,error' }),
    wait: (id) => get(`/v1/jobs/${id}`, { wait: '5' }),
    events,
    list: () => get('/v1/jobs'),
    'list by CompletedJob': () => get('/v1/jobs', { status: 'CompletedJob' }),
    'list by Error': () => get('/v1/jobs', { status: 'Error' }),
    'webhook list': () => admin('webhook', 'list', caller.slug),
    'job show': (id) => admin('job', 'show', id),
    'job explain': (id) => admin('job', 'explain', id),
  };

  it('costs a poll that would wait for it one call of Redis, as a poll that does not wait', async () => {
    const id = await submit();
    await deliver(id);
    // The first poll also brings Redis the script.
    for (const wait of ['0', '0', '30']) await api.get(`/v1/jobs/${id}`, caller.key, { wait });
    const [, ...polls] = calls.requests.filter(({ path }) => path === `/v1/jobs/${id}`);
    expect(polls.map((poll) => poll.calls)).to.deep.equal([1, 1]);
  });

  it('is shown the same after a minute and after 29 days, but for the link to a file that is gone', async () => {
    const ids: Record<string, string> = {};
    for (const [name, make] of Object.entries(makers)) ids[name] = await make();
    const readAll = async () => {
      const seen: Record<string, unknown> = {};
      for (const [name, id] of Object.entries(ids)) {
        for (const [route, read] of Object.entries(readers)) seen[`${route} of one ${name}`] = await read(id);
      }
      return seen;
    };
    api.store.advance(60_000);
    const young = await readAll();
    api.store.advance(29 * day - 60_000);
    await sweepRecord(api.store, { job: 30 * day, line: 90 * day });
    const old = await readAll();
    const isLink = (name: string, value: unknown) => name === 'response' && typeof value === 'string';
    const withoutLinks = (all: object) =>
      JSON.parse(JSON.stringify(all, (name, value) => (isLink(name, value) ? null : value)));
    expect(old).to.deep.equal({ ...withoutLinks(young), ...adminLinks(young) });
    expect(JSON.stringify(young)).to.include('/files/');
  });

  for (const [age, milliseconds] of [
    ['a minute', 60_000],
    ['29 days', 29 * day],
  ] as const) {
    it(`is changed the same after ${age}: DELETE, retry and replay`, async () => {
      const [file, hooked] = [
        await makers['with a file']!(),
        await makers['with a failure at its second attempt, and a webhook']!(),
      ];
      const [before] = [await get(`/v1/jobs/${file}`)];
      api.store.advance(milliseconds);
      const removed = await api.call('DELETE', `/v1/jobs/${file}`, { key: caller.key });
      expect([removed.status, removed.json.result.response, removed.json.result.metadata]).to.deep.equal([
        200,
        null,
        metadataOf(before),
      ]);
      expect((await api.call('DELETE', `/v1/jobs/${file}`, { key: caller.key })).json).to.deep.equal(removed.json);
      expect((await admin('job', 'explain', file)).at(-1).text).to.equal('Its file is removed');
      const again = await api.call('POST', `/v1/jobs/${hooked}/retry`, { key: caller.key });
      expect(again.status).to.equal(202);
      const [old, fresh] = [await readWebhook(api.store, hooked), await readWebhook(api.store, again.json.job_id)];
      expect(fresh).to.deep.equal({ ...old, authorization: fresh?.authorization });
      expect(await admin('webhook', 'replay', hooked)).to.include({
        job: hooked,
        url: hook,
        status: 'due',
        attempts: 0,
      });
    });
  }
});

function metadataOf([, job]: unknown[]): unknown {
  return (job as { result: { metadata: unknown } }).result.metadata;
}

/** The operator's clock has not moved. */
function adminLinks(all: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(all).filter(([name]) => name.startsWith('job show')));
}
