import { setTimeout as pause } from 'node:timers/promises';
import { isEnded } from '../model/job.ts';
import { answered, type Check, check, hasShape, refused, same, want } from './conform-check.ts';
import { type ConformClient, pick } from './conform-client.ts';
import { spent, start } from './conform-jobs.ts';

const endSeconds = 900;
const restMs = 250;
const video = '/v1/video/download';

export const mediaChecks: readonly Check[] = [
  check('billing-1', 'A synchronous call costs one credit when it answers 200, a repeat of it none', billedCall, 1),
  check('metadata-fields', 'A metadata job gives the 19 fields and no file', metadataJob, 1),
  check('billing-2', 'A download costs one credit when it completes, and none before', billedJob, 1),
  check('D20', 'Progress never falls, is at most 99 until the job completes, and 100 then', progress, 0),
  check('D21', 'duration_ms is completed_at less started_at', duration, 0),
  check('D23', 'The link of a result works without a key, whole or in part', result, 0),
  check('D24', 'The file of a job can be removed: it polls as null then, and its link is 410', removed, 0),
  check('D33', 'An audio download delivers sound', sound, 1),
];

type Polls = readonly unknown[];

async function finish(ask: ConformClient, path: string, query: Readonly<Record<string, string>> = {}): Promise<Polls> {
  const { id } = await start(ask, path, { ...query, query: ask.mediaUrl ?? '' });
  const end = performance.now() + endSeconds * 1000;
  const polls: unknown[] = [];
  for (;;) {
    const job = answered(await ask.get(`/v1/jobs/${id}`, { wait: '1' }), 200);
    polls.push(job);
    if (isEnded(pick(job, 'status'))) return polls;
    want(performance.now() < end, `an end within ${endSeconds} s`, job);
    // A service that does not know `wait` answers at once.
    await pause(restMs);
  }
}

function theDownload(ask: ConformClient): Promise<{ polls: Polls; job: unknown; before: number; after: number }> {
  return ask.once('download', async () => {
    const before = await spent(ask);
    const polls = await finish(ask, video);
    return { polls, job: polls.at(-1), before, after: await spent(ask) };
  });
}

async function billedCall(ask: ConformClient): Promise<void> {
  const before = await spent(ask);
  const headers = { 'idempotency-key': `${ask.film}/call` };
  const asked = () => ask.call('GET', '/v1/media/metadata', { query: { query: ask.mediaUrl ?? '' }, headers });
  const first = answered(await asked(), 200);
  hasShape(pick(first, 'metadata'), 'Metadata', 'metadata');
  same(await spent(ask), before + 1, 'total_used');
  same(answered(await asked(), 200), first, 'the repeated answer');
  same(await spent(ask), before + 1, 'total_used after the repeat');
}

async function metadataJob(ask: ConformClient): Promise<void> {
  const job = (await finish(ask, '/v1/media/metadata', { is_async: 'true' })).at(-1);
  same([pick(job, 'status'), pick(job, 'success')], ['CompletedJob', true], 'status and success');
  hasShape(pick(job, 'result.metadata'), 'Metadata', 'result.metadata');
  same(pick(job, 'result.response'), null, 'result.response');
}

async function billedJob(ask: ConformClient): Promise<void> {
  const { job, before, after } = await theDownload(ask);
  want(pick(job, 'status') === 'CompletedJob' && pick(job, 'success') === true, 'CompletedJob with success true', job);
  same(after, before + 1, 'total_used');
}

async function progress(ask: ConformClient): Promise<void> {
  const { polls, job } = await theDownload(ask);
  const seen = polls.map((one) => Number(pick(one, 'progress')));
  want(
    seen.every((one, n) => n === 0 || one >= Number(seen[n - 1])),
    'a progress that never falls',
    seen,
  );
  want(
    seen.slice(0, -1).every((one) => one <= 99),
    'at most 99 before the end',
    seen,
  );
  if (pick(job, 'status') === 'CompletedJob') same(seen.at(-1), 100, 'progress at the end');
}

async function duration(ask: ConformClient): Promise<void> {
  const { job } = await theDownload(ask);
  const [started, completed] = ['started_at', 'completed_at'].map((name) => Date.parse(String(pick(job, name))));
  same(pick(job, 'duration_ms'), Number(completed) - Number(started), 'duration_ms');
}

async function result(ask: ConformClient): Promise<void> {
  const { job } = await theDownload(ask);
  const shown = pick(job, 'result');
  hasShape(shown, 'Result', 'result', ['bytes', 'sha256', 'content_type', 'expires_at']);
  hasShape(pick(shown, 'metadata'), 'Metadata', 'result.metadata');
  const link = String(pick(shown, 'response'));
  const head = await ask.call('HEAD', link, { key: null });
  const length = head.headers.get('content-length');
  same([head.status, length], [200, String(pick(shown, 'bytes'))], 'HEAD of the link, with its length, as');
  const part = await ask.call('GET', link, { key: null, headers: { range: 'bytes=0-0' } });
  // A store of its own answers behind a redirect (D68).
  want(part.status === 206 || part.status === 307, '206 or 307', part.status);
}

async function removed(ask: ConformClient): Promise<void> {
  const { job } = await theDownload(ask);
  const id = String(pick(job, 'id'));
  answered(await ask.call('DELETE', `/v1/jobs/${id}`), 200);
  const after = answered(await ask.get(`/v1/jobs/${id}`), 200);
  same([pick(after, 'status'), pick(after, 'result.response')], ['CompletedJob', null], 'status and response');
  const link = await ask.call('GET', String(pick(job, 'result.response')), { key: null });
  refused(link, 'not_found', /^Gone/, 410);
}

async function sound(ask: ConformClient): Promise<void> {
  const job = (await finish(ask, '/v1/audio/download')).at(-1);
  want(pick(job, 'status') === 'CompletedJob', 'CompletedJob', job);
  want(/^audio\//.test(String(pick(job, 'result.content_type'))), 'a content_type of sound', pick(job, 'result'));
}
