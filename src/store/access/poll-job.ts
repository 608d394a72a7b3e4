import type { Job } from '../../model/job.ts';
import type { QueuePosition } from '../../model/job-json.ts';
import { parseEnd } from '../jobs/ended-job.ts';
import { openJobOf, storedEndOf } from '../jobs/read-job.ts';
import { number, pairs, type RecordStore, run, type ScriptReply, script } from '../script.ts';
import {
  authorizeArgNames,
  authorizeFreeLua,
  authorizeKeyNames,
  type Caller,
  type Rates,
  type RefusedCall,
  readAuthorized,
} from './authorize.ts';

/** Fields of the account that say when its next job may start, and Lua of the list in which a reply holds them for `readFound`. */
export const positionFields = 'running concurrency';
export const sharedPosition = '{ account_running, account_concurrency }';

/**
 * Lua that reads a job. It needs the key `queue` and the account's fields of `positionFields`.
 *
 * find_job(job, endedJob, jobId) → JSON of the fields of the job, or its stored form once it has ended, and its position in the
 *   account's queue or ''; nil for another account's job (D14). JSON is one string, where every string of a reply would be a
 *   Buffer of its own.
 */
export const findJob = /* lua */ `
local function find_job(job, endedJob, jobId)
  local owner = redis.call('HGET', job, 'account')
  if owner == accountId then
    return cjson.encode(redis.call('HGETALL', job)), redis.call('ZRANK', queue, jobId) or ''
  end
  local stored = not owner and redis.call('GET', endedJob)
  if stored and string.sub(stored, 1, #accountId + 1) == accountId .. ' ' then return stored, '' end
end
`;

/**
 * Authorizes a free call and reads a job with its position in the account's queue.
 * Answers {'entered', '', '', rates, what `find_job` returned, `sharedPosition`} or a refusal.
 */
const pollJobScript = script(
  'poll-job',
  'light',
  [...authorizeKeyNames, 'job', 'endedJob', 'queue'],
  [...authorizeArgNames, 'jobId'],
)`${authorizeFreeLua({ account: positionFields })}${findJob}
local found, position = find_job(job, endedJob, jobId)
if not found then return answer('not_found') end
return { 'entered', '', '', rates, found, position, ${sharedPosition} }
`;

/** A job as its account sees it, or the refusal of the poll. */
export type PolledJob = { readonly job: Job; readonly position: QueuePosition; readonly rates: Rates } | RefusedCall;

/** Authorizes the caller and reads one of the account's jobs, in one step. */
export async function pollJob(store: RecordStore, caller: Caller, jobId: string): Promise<PolledJob> {
  const reply = await run(store, pollJobScript, { ...caller, jobId }, { asBytes: true });
  return readAuthorized(reply, (values) => readFound(jobId, values));
}

/** Reads what `find_job` returned, with `sharedPosition` behind it. */
export function readFound(jobId: string, [found, rank, shared]: ScriptReply) {
  const [running, concurrency] = shared as ScriptReply;
  const position = { before: number(rank), running: Number(running), concurrency: number(concurrency) };
  const stored = found as Buffer;
  // The stored form begins with the id of an account.
  const isOpen = stored[0] === 0x5b;
  const { job } = isOpen
    ? openJobOf(jobId, pairs(JSON.parse(stored.toString())))
    : storedEndOf(jobId, parseEnd(stored));
  return { job, position };
}
