import { parseEnd } from '../jobs/ended-job.ts';
import { openJobOf, storedEndOf } from '../jobs/read-job.ts';
import { number, pairs, type RecordStore, run, script } from '../script.ts';
import { authorizeArgNames, authorizeFreeLua, authorizeKeyNames, type Caller, readAuthorized } from './authorize.ts';

/**
 * Authorizes a free call and reads a job with its position in the account's queue. Another account's job is 'not_found' (D14).
 * Answers {'entered', '', '', rates, JSON of the fields of the job or its stored form once it has ended, position or '', how
 * many jobs of the account run, its own limit of those or ''} or a refusal. JSON is one string, where every string of a reply
 * would be a Buffer of its own.
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
return { 'entered', '', '', rates, cjson.encode(redis.call('HGETALL', job)), redis.call('ZRANK', queue, jobId) or '',
  account_running, account_concurrency }
`,
);

/** Authorizes the caller and reads one of the account's jobs, in one step. */
export async function pollJob(store: RecordStore, caller: Caller, jobId: string) {
  const reply = await run(store, pollScript, { ...caller, jobId }, [], true);
  return readAuthorized(reply, ([found, rank, running, concurrency]) => {
    const position = { before: number(rank), running: Number(running), concurrency: number(concurrency) };
    const stored = found as Buffer;
    // The stored form begins with the id of an account.
    const isOpen = stored[0] === 0x5b;
    const { job } = isOpen
      ? openJobOf(pairs(JSON.parse(stored.toString())))
      : storedEndOf(jobId, parseEnd(jobId, stored));
    return { job, position };
  });
}
