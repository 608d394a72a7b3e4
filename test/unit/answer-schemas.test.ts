import { expect } from 'chai';
import { answerFault } from '../../src/model/answer-fault.ts';
import { schemas } from '../../src/model/answer-schemas.ts';
import { summarize } from '../../src/model/batch-summary.ts';
import { jobJson, queueJson, webhookBody } from '../../src/model/job-json.ts';
import { packItem, reducedUsage, usage } from '../../src/model/money.ts';
import { healthOf } from '../../src/model/stats.ts';
import { aPack, someBalances } from '../support/balances.ts';
import { aJob, aRunningJob, someDelivered, someMetadata } from '../support/jobs.ts';

const hour = 3_600_000;
const uuid = '11111111-2222-4333-8444-555555555555';
const url = 'https://example.com/film';
const wholeMetadata = {
  ...someMetadata,
  ...{ width: 1, height: 1, channel: 'A', channel_url: url, is_live: false, was_live: false },
  ...{ live_status: 'not_live' as const, extractor: 'a', thumbnail: url, like_count: 1, view_count: 1 },
  ...{ description: 'A', upload_date: 20_260_102, webpage_url: url, original_url: url },
};
const ended = { started_at: 1000, ended_at: 3500, metadata: wholeMetadata };
const beside = { now: hour, link: url, expires_at: 24 * hour, queue: queueJson(waiting(), 5) };
const jobs = {
  completed: aRunningJob({ ...ended, status: 'CompletedJob', delivered: someDelivered(1) }),
  failed: aRunningJob({ ...ended, status: 'Error', error_code: 'private', error: 'This content is private' }),
  queued: aJob(),
  running: aRunningJob({ stage: 'fetch', speed_bytes: 5000, eta_seconds: 9 }),
};
const key = {
  ...{ alias: 'main', active: true, category: 'production', expires: 1 },
  quotas: { total: 100, monthly: 7, weekly: 6, daily: 5 },
};
const plan = { name: 'pro', per_minute: 900, per_second: 30 };
const balances = someBalances({ quota: 10, period_start: 1, period_end: 2, packs: [aPack('a'), aPack('b')] });

const summary = summarize({ id: uuid, isCancelled: false }, { queued: 1, running: 0, completed: 0, failed: 1 });
const batchJob = { query: url, job_id: uuid, status: 'Error', error: 'This content is private', error_code: 'private' };
const day = { day: '2026-01-02', key: 'main', calls: 3, credits: 2, completed: 2, failed: 1 };

/** Answers as the model makes them. */
const answers: [name: string, schema: string, answer: object][] = [
  ['an error', 'Error', { error: 'Not Found' }],
  ['an accepted job', 'Accepted', { job_id: uuid }],
  ['an accepted batch', 'AcceptedBatch', { batch_id: uuid }],
  ['an event', 'JobEvent', { id: '1', event: 'progress', data: '{}' }],
  ['metadata', 'Metadata', wholeMetadata],
  ...Object.entries(jobs).map(([name, job]): (typeof answers)[0] => [`a ${name} job`, 'Job', jobJson(job, beside)]),
  ['a list of jobs', 'JobList', { jobs: [jobJson(jobs.completed, beside)], next_cursor: 'next' }],
  ['usage', 'Usage', usage(balances, { name: 'Acme', slug: 'acme' }, plan, key, 3)],
  ['reduced usage', 'ReducedUsage', reducedUsage(balances, plan)],
  ['a pack', 'Pack', packItem(aPack('a'))],
  ['a history of usage', 'UsageHistory', { days: [day] }],
  ['statistics', 'Stats', healthOf('video', '/v1/video/download', [], hour)],
  ['a batch', 'Batch', { ...summary, jobs: [batchJob], next_cursor: '100' }],
  ['the webhook of a batch', 'WebhookBatch', summary],
  ['the webhook of a completed job', 'WebhookCompleted', webhookBody(jobs.completed, url)],
  ['the webhook of a failed job', 'WebhookFailed', webhookBody(jobs.failed, null)],
  ['the webhook of a test', 'WebhookTest', { id: uuid, type: 'test', created_at: '2026-01-02T03:04:05.006Z' }],
];

function waiting() {
  return { before: 1, running: 0, concurrency: null, stage: null };
}

/** Every path in a value with what stands there, but nothing in `args`, which holds what the caller gave. */
function placesOf(value: unknown, before: readonly string[] = []): [path: string[], value: unknown][] {
  if (typeof value !== 'object' || value === null || before.at(-1) === 'args') return [];
  return Object.entries(value).flatMap(([name, inner]): [string[], unknown][] => {
    const path = [...before, name];
    return [[path, inner], ...placesOf(inner, path)];
  });
}

/** Returns a copy in which the value of one path is changed; `undefined` takes the field away. */
function change(whole: object, path: readonly string[], make: (value: unknown) => unknown): object {
  const copy = JSON.parse(JSON.stringify(whole));
  const inner = path.slice(0, -1).reduce<Record<string, unknown>>((at, name) => at[name] as never, copy);
  const name = path.at(-1)!;
  const value = make(inner[name]);
  if (value === undefined) delete inner[name];
  else inner[name] = value;
  return copy;
}

/** Answers that `fields` cannot cut, and the bodies of webhooks. */
const uncut = /^(?:Error|Accepted|JobEvent|Webhook)/;

/** Names of a schema: its own, and that of its part unless `fields` cannot cut it. */
function formsOf(schema: string): string[] {
  return [schema, ...(uncut.test(schema) ? [] : [`${schema}Part`])];
}

/** Returns every description within a schema. */
function descriptionsOf(schema: unknown): unknown[] {
  if (typeof schema !== 'object' || schema === null) return [];
  return Object.entries(schema).flatMap(([name, value]) =>
    name === 'description' && typeof value !== 'object' ? [value] : descriptionsOf(value),
  );
}

const wrong = (value: unknown) => (typeof value === 'object' ? 'wrong' : { wrong: true });
/** Fields that a job may lack. */
const optional =
  /^(?:error|error_code|retryable|queue|stage|speed_bytes|eta_seconds|result\.(?:expires_at|bytes|sha256|content_type))$/;

describe('schemas of answers', () => {
  for (const [name, schema, answer] of answers) {
    it(`take ${name} as the model makes it, whole and as a part`, () => {
      for (const form of formsOf(schema)) expect(answerFault(form, answer)).to.equal(null);
    });

    it(`name the path of each value of the wrong type in ${name}`, () => {
      for (const [path, value] of placesOf(answer)) {
        if (value === null) continue;
        const changed = change(answer, path, wrong);
        const faults = formsOf(schema).map((form) => answerFault(form, changed));
        for (const fault of faults) {
          expect(fault?.path).to.equal(path.join('.'));
          expect(fault?.problem, path.join('.')).to.match(/^must /);
        }
      }
    });

    it(`miss each field that ${name} must have, and none in a part of it`, () => {
      for (const [path] of placesOf(answer)) {
        if (/^\d+$/.test(path.at(-1)!)) continue;
        const changed = change(answer, path, () => undefined);
        const isOptional = schema.startsWith('Job') && optional.test(path.join('.').replace('jobs.0.', ''));
        const fault = answerFault(schema, changed);
        const message = `${path.join('.')}; "optional" in this file lists what a job may lack`;
        expect(fault?.path, message).to.equal(isOptional ? undefined : path.slice(0, -1).join('.'));
        for (const part of formsOf(schema).slice(1)) expect(answerFault(part, changed), path.join('.')).to.equal(null);
      }
    });
  }

  const values: [schema: string, path: string, value: unknown, fits: boolean][] = [
    ['Accepted', 'job_id', uuid.slice(1), false],
    ['Accepted', 'job_id', `a${uuid}`, false],
    ['Accepted', 'job_id', `${uuid}a`, false],
    ['Accepted', 'job_id', uuid.replaceAll('-', ''), false],
    ['Accepted', 'job_id', uuid.replaceAll('1', 'x'), false],
    ['Accepted', 'job_id', uuid.replaceAll('1', 'F'), false],
    ['JobEvent', 'event', 'begin', false],
    ['JobEvent', 'event', 'end', true],
    ['Job', 'status', 'Done', false],
    ['Job', 'progress', -1, false],
    ['Job', 'progress', 0, true],
    ['Job', 'progress', 100, true],
    ['Job', 'progress', 101, false],
    ['Job', 'progress', 1.5, false],
    ['Job', 'success', null, true],
    ['Job', 'result', null, true],
    ['Job', 'error_code', 'no_such_code', false],
    ['Job', 'error_code', null, true],
    ['Job', 'started_at', '2026-01-02', false],
    ['Job', 'started_at', '2026-01-02T03:04:05Z', true],
    ['Job', 'started_at', '2026-01-02T03:04:05.006Z', true],
    ['Job', 'started_at', '2026-01-02T03:04:05+01:00', true],
    ['Job', 'started_at', '2026-01-02T03:04:05', false],
    ['Job', 'started_at', 'x2026-01-02T03:04:05Z', false],
    ['Job', 'started_at', '2026-01-02T03:04:05Zx', false],
    ['Job', 'result.response', 'no URL', false],
    ['Job', 'result.response', null, true],
    ['Job', 'result.bytes', -1, false],
    ['Job', 'result.bytes', 1.5, false],
    ['Job', 'result.metadata', null, true],
    ['Job', 'result.metadata.channel_url', 'no URL', false],
    ['Job', 'result.metadata.live_status', 'asleep', false],
    ['Job', 'result.metadata.live_status', 'post_live', true],
    ['Job', 'result.metadata.duration', 12.5, true],
    ['Job', 'result.metadata.width', 12.5, false],
    ['Usage', 'packs', null, true],
    ['Usage', 'packs.current', null, true],
    ['Usage', 'api_key.quotas.daily', null, true],
    ['Usage', 'subscription.percent_used', 33.33, true],
    ['Usage', 'remaining', 33.33, false],
    ['Batch', 'status', 'Cancelled', true],
    ['Batch', 'status', 'Done', false],
    ['Batch', 'counts.failed', -1, false],
    ['Batch', 'credits.held', 0.5, false],
    ['Batch', 'jobs.0.status', 'Done', false],
    ['Batch', 'jobs.0.status', null, true],
    ['Batch', 'jobs.0.query', null, true],
    ['Batch', 'jobs.0.error_code', 'no_such_code', false],
    ['Batch', 'jobs.0.error_code', null, true],
    ['Batch', 'next_cursor', null, true],
    ['UsageHistory', 'days.0.day', '2026-3-04', false],
    ['UsageHistory', 'days.0.day', 'x2026-01-02', false],
    ['UsageHistory', 'days.0.day', '2026-01-02T03:04:05Z', false],
    ['WebhookCompleted', 'status', 'Error', false],
    ['WebhookCompleted', 'result.response', null, true],
    ['WebhookCompleted', 'result.response', 'no URL', false],
    ['WebhookFailed', 'status', 'CompletedJob', false],
    ['WebhookTest', 'type', 'batch', false],
    ['Stats', 'health', 'fine', false],
    ['Stats', 'health', 'degraded', true],
    ['Stats', 'health', 'down', true],
    ['Stats', 'window', '2h', false],
    ['Stats', 'path', null, true],
  ];
  for (const [schema, path, value, fits] of values) {
    it(`${fits ? 'take' : 'refuse'} ${JSON.stringify(value)} for ${schema} ${path}`, () => {
      const [, , answer] = answers.find(([, name]) => name === schema)!;
      const fault = answerFault(
        schema,
        change(answer, path.split('.'), () => value),
      );
      expect(fault?.path).to.equal(fits ? undefined : path);
    });
  }

  it('tell the webhook of a completed job from that of a failed one', () =>
    expect(answerFault('WebhookFailed', webhookBody(jobs.completed, url))?.path).to.equal(''));

  it('describe in words what a name leaves open', () => {
    const descriptions = descriptionsOf(schemas);
    expect(descriptions).to.have.length.above(30);
    for (const description of descriptions) expect(description).to.match(/^[A-Za-z].*[A-Za-z)]$/);
  });

  it('are known by their names alone', () => {
    expect(() => answerFault('Nothing', {})).to.throw('there is no schema Nothing');
  });
});
