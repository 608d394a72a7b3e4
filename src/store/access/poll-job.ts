import { parseEnd } from '../jobs/ended-job.ts';
import { openJobOf, storedEndOf } from '../jobs/read-job.ts';
import { number, pairs, type RecordStore, run, script, textsOf } from '../script.ts';
import { authorizeArgNames, authorizeFreeLua, authorizeKeyNames, type Caller, readAuthorized } from './authorize.ts';

/**
 * Authorizes a free call and reads a job with its position in the account's queue. Another account's job is 'not_found' (D14).
 * Answers {'entered', '', '', rates, fields of the job or its stored form once it has ended, position or '', how many jobs of
 * the account run, its own limit of those or ''} or a refusal.
 */
const pollScript = script(
  'poll',
  'light',
  [...authorizeKeyNames, 'job', 'endedJob', 'queue'] as const,
  [...authorizeArgNames, 'jobId'] as const,
  /* lua */ `${authorizeFreeLua({ account: 'running concurrency' })}
local owner = redis.call('HGET', job, 'account')
if not owner then
  local stored = redis.call('GET', endedJob)
  if stored and string.sub(stored, 1, #accountId + 1) == accountId .. ' ' then
    return { 'entered', '', '', rates, stored, '', account_running, account_concurrency }
  end
end
if owner ~= accountId then return answer('not_found') end
return { 'entered', '', '', rates, redis.call('HGETALL', job), redis.call('ZRANK', queue, jobId) or '', account_running,
  account_concurrency }
`,
);

/** Authorizes the caller and reads one of the account's jobs, in one step. */
export async function pollJob(store: RecordStore, caller: Caller, jobId: string) {
  const reply = await run(store, pollScript, { ...caller, jobId }, [], true);
  const stored = reply[4];
  return readAuthorized(textsOf(reply), ([fields, rank, running, concurrency]) => {
    const position = { before: number(rank), running: Number(running), concurrency: number(concurrency) };
    const { job } = Buffer.isBuffer(stored) ? storedEndOf(jobId, parseEnd(jobId, stored)) : openJobOf(pairs(fields));
    return { job, position };
  });
}
