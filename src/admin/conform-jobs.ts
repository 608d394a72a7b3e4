import { isEnded } from '../model/job.ts';
import {
  answered,
  type Check,
  check,
  hasShape,
  headed,
  notVisible,
  refused,
  same,
  skipRow,
  want,
} from './conform-check.ts';
import { type ConformClient, pick } from './conform-client.ts';

/** Parameters of the job that most rows look at; the webhook is refused its address long before anything is sent. */
const asked = {
  video_quality: '480p',
  max_duration: '2.5',
  webhook_url: 'https://hook.invalid/',
  webhook_authorization: 'hush-hush',
};
const video = '/v1/video/download';

/** The life of jobs whose film does not exist: they are cancelled, and cost nothing. */
export const jobChecks: readonly Check[] = [
  check('D1', 'A download answers 202 with only job_id, and Location', async (ask) => {
    const { answer, id } = await theJob(ask);
    // TRAWL_ASYNC_STATUS may be 200, for callers that know no other.
    want(answer.status === 202 || answer.status === 200, '202', answer);
    same(answer.json, { job_id: id }, 'the body');
    same(answer.headers.get('location'), `${ask.path}/v1/jobs/${id}`, 'Location');
    headed(answer, 'x-credits-held', /^\d+$/);
  }),
  check('jobs-answer', 'A job has every field, each of its type', async (ask) => {
    const { id } = await theJob(ask);
    for (const path of ['/v1/jobs', '/api/v1/jobs', '/jobs']) {
      const job = answered(await ask.get(`${path}/${id}`), 200);
      hasShape(job, 'Job', 'the job', ['error', 'error_code', 'retryable']);
      same([pick(job, 'id'), pick(job, 'endpoint')], [id, video], 'id and endpoint');
    }
  }),
  check('D18', 'Until a job has ended, success, completed_at, duration_ms and result are null', async (ask) => {
    const { id } = await theJob(ask);
    const job = answered(await ask.get(`/v1/jobs/${id}`), 200);
    if (isEnded(pick(job, 'status'))) skipRow('the job ended too soon');
    const open = ['success', 'completed_at', 'duration_ms', 'result', 'error'];
    for (const name of open) same(pick(job, name), null, `${name} of an open job`);
    const progress = Number(pick(job, 'progress'));
    want(progress <= 99, 'progress of at most 99', progress);
  }),
  check('D22', 'args tells what was understood, with defaults, and no secret', async (ask) => {
    const { id } = await theJob(ask);
    const { max_duration, ...rest } = asked;
    same(
      pick(answered(await ask.get(`/v1/jobs/${id}`), 200), 'args'),
      {
        query: `${ask.film}/first`,
        download_type: 'audio_video',
        video_format: 'mp4',
        ...rest,
        max_duration: Number(max_duration),
        webhook_authorization: '***',
        is_async: true,
      },
      'args',
    );
  }),
  check('D9', 'fields keeps what is named, with its parents; unknown names and errors are left alone', fields),
  check('D14', 'An unknown job is 404, an id that is no UUID 400', async (ask) => {
    refused(await ask.get('/v1/jobs/00000000-0000-4000-8000-000000000000'), 'not_found');
    refused(await ask.get('/v1/jobs/nonsense'), 'bad_request', /^Bad Request: id must be /);
  }),
  check('D12', 'The same Idempotency-Key gives the same job, and 409 for other parameters', repeats),
  check('D2', 'Metadata with is_async answers with a job', async (ask) => {
    const { id } = await start(ask, '/v1/media/metadata', { query: `${ask.film}/metadata`, is_async: 'true' });
    const job = answered(await ask.get(`/v1/jobs/${id}`), 200);
    same(pick(job, 'endpoint'), '/v1/media/metadata', 'endpoint');
    same(pick(job, 'args'), { query: `${ask.film}/metadata`, is_async: true }, 'args');
  }),
  check('D41', 'A job holds one credit until it ends; what remains is not touched', holds),
  check('billing-4', 'Polls, usage and the list are free', async (ask) => {
    const { id } = await theJob(ask);
    const before = await spent(ask);
    for (const path of [`/v1/jobs/${id}`, '/v1/jobs', '/v1/usage']) answered(await ask.get(path), 200);
    same(await spent(ask), before, 'total_used');
  }),
  check('D16', 'A cancelled job ends as Error with the code cancelled; repeating it changes nothing', cancel),
  check('D84', 'A list has pages; a stream of an ended job sends end and closes; wait answers at once then', waits),
  check('D83', 'Retrying an ended job starts a new one; an open one is 409', retry),
  notVisible('events-1', 'A webhook tells the end of a job', 'it needs a receiver that the deployment reaches'),
];

/** Starts a job; leaves the row unjudged when the account or the key cannot. */
export async function start(ask: ConformClient, path: string, query: Readonly<Record<string, string>>, headers = {}) {
  const answer = await ask.call('GET', path, { query, headers });
  const id = pick(answer.json, 'job_id');
  if (typeof id === 'string') return { answer, id };
  const code = answer.headers.get('x-error-code');
  if (code === 'payment_required') skipRow('the account has no credit left to hold');
  if (code === 'key_quota_exceeded') skipRow('the quota of the key is reached');
  want(false, 'a job_id', answer);
  return { answer, id: '' };
}

/** Returns the used credits of the account. */
export async function spent(ask: ConformClient): Promise<number> {
  return Number(pick(answered(await ask.get('/v1/usage'), 200), 'total_used'));
}

function theJob(ask: ConformClient) {
  return ask.once('job', () => start(ask, video, { query: `${ask.film}/first`, ...asked }));
}

function theEnded(ask: ConformClient): Promise<string> {
  return ask.once('ended', async () => {
    const { id } = await start(ask, video, { query: `${ask.film}/ended` });
    answered(await ask.call('DELETE', `/v1/jobs/${id}`), 200);
    return id;
  });
}

async function fields(ask: ConformClient): Promise<void> {
  const { id } = await theJob(ask);
  const job = answered(await ask.get(`/v1/jobs/${id}`, { fields: ' id , args.query,nonsense' }), 200);
  same(job, { id, args: { query: `${ask.film}/first` } }, 'the body');
  const list = answered(await ask.get('/v1/jobs', { fields: 'jobs.id', limit: '1' }), 200);
  same(Object.keys((pick(list, 'jobs.0') ?? {}) as object), ['id'], 'the fields of a job in the list');
  refused(await ask.get('/v1/jobs/nonsense', { fields: 'id' }), 'bad_request', /^Bad Request: id must be /);
  const accepted = await start(ask, '/v1/audio/download', { query: `${ask.film}/fields`, fields: 'nonsense' });
  same(accepted.answer.json, { job_id: accepted.id }, 'the body');
}

async function repeats(ask: ConformClient): Promise<void> {
  const headers = { 'idempotency-key': ask.film };
  const first = await start(ask, video, { query: `${ask.film}/once` }, headers);
  const again = await start(ask, video, { query: `${ask.film}/once` }, headers);
  same(again.id, first.id, 'job_id');
  const other = await ask.call('GET', video, { query: { query: `${ask.film}/other` }, headers });
  refused(other, 'idempotency_conflict', /./);
}

async function holds(ask: ConformClient): Promise<void> {
  const look = async () => {
    const usage = answered(await ask.get('/v1/usage'), 200);
    return { held: Number(pick(usage, 'held')), remaining: Number(pick(usage, 'remaining')) };
  };
  const before = await look();
  const { id } = await start(ask, video, { query: `${ask.film}/hold` });
  const during = await look();
  const { json } = await ask.get(`/v1/jobs/${id}`);
  if (isEnded(pick(json, 'status'))) skipRow('the job ended too soon');
  same(during, { ...before, held: before.held + 1 }, 'held and remaining');
  answered(await ask.call('DELETE', `/v1/jobs/${id}`), 200);
  same(await look(), before, 'held and remaining after the cancel');
}

async function cancel(ask: ConformClient): Promise<void> {
  const id = await theEnded(ask);
  const job = answered(await ask.get(`/v1/jobs/${id}`), 200);
  if (pick(job, 'error_code') !== 'cancelled' && isEnded(pick(job, 'status')))
    skipRow('the job ended before it was cancelled');
  const seen = ['status', 'success', 'error', 'error_code', 'retryable', 'result'].map((name) => pick(job, name));
  same(
    seen,
    ['Error', false, 'Cancelled', 'cancelled', false, null],
    'status, success, error, error_code, retryable, result',
  );
  same(answered(await ask.call('DELETE', `/v1/jobs/${id}`), 200), job, 'the job');
}

async function waits(ask: ConformClient): Promise<void> {
  for (const [name, value] of [
    ['limit', '0'],
    ['limit', '101'],
    ['cursor', 'nonsense'],
  ] as const) {
    refused(await ask.get('/v1/jobs', { [name]: value }), 'bad_request', new RegExp(`^Bad Request: ${name} must be `));
  }
  const id = await theEnded(ask);
  refused(await ask.get(`/v1/jobs/${id}`, { wait: '31' }), 'bad_request', /^Bad Request: wait must be /);
  const first = answered(await ask.get('/v1/jobs', { limit: '1' }), 200);
  const cursor = pick(first, 'next_cursor');
  if (typeof cursor === 'string') {
    const second = answered(await ask.get('/v1/jobs', { limit: '1', cursor }), 200);
    want(pick(second, 'jobs.0.id') !== pick(first, 'jobs.0.id'), 'another job on the next page', second);
  }
  const text = await ask.stream(`/v1/jobs/${id}/events`, '\n\n');
  want(/^id: \d+\nevent: end\ndata: \{/.test(text), 'the event end with the job', text);
  const asked = performance.now();
  answered(await ask.get(`/v1/jobs/${id}`, { wait: '30' }), 200);
  const seconds = (performance.now() - asked) / 1000;
  want(seconds < 15, 'an answer at once for a job that has ended', `it after ${Math.round(seconds)} s`);
}

async function retry(ask: ConformClient): Promise<void> {
  const id = await theEnded(ask);
  const answer = await ask.call('POST', `/v1/jobs/${id}/retry`);
  const again = String(pick(answer.json, 'job_id'));
  if (answer.status === 402) skipRow('the account has no credit left to hold');
  same(answer.headers.get('location'), `${ask.path}/v1/jobs/${again}`, 'Location');
  want(again !== id, 'another job', answer);
  const job = answered(await ask.get(`/v1/jobs/${again}`), 200);
  same(pick(job, 'args.query'), `${ask.film}/ended`, 'args.query');
  if (!isEnded(pick(job, 'status'))) refused(await ask.call('POST', `/v1/jobs/${again}/retry`), 'not_ended');
}
