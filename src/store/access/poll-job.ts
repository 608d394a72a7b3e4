import type { Job } from '../../model/job.ts';
import { jobOf, type QueuePosition } from '../jobs/read-job.ts';
import { number, pairs, type RecordStore, run, script } from '../script.ts';
import {
  authorizeArgNames,
  authorizeFreeLua,
  authorizeKeyNames,
  type Caller,
  type Rates,
  type RefusedCall,
  readRates,
  readRefused,
} from './authorize.ts';

/**
 * Authorizes a free call and reads a job with its position in the account's queue. Another account's job is 'not_found' (D14).
 * Answers {'entered', '', '', rates, fields of the job, position or '', how many jobs of the account run, its own limit of
 * those or ''} or a refusal.
 */
const pollScript = script(
  'poll',
  'always',
  [...authorizeKeyNames, 'job', 'queue'] as const,
  [...authorizeArgNames, 'jobId'] as const,
  /* lua */ `${authorizeFreeLua({ account: 'running concurrency' })}
if redis.call('HGET', job, 'account') ~= accountId then return answer('not_found') end
return { 'entered', '', '', rates, redis.call('HGETALL', job), redis.call('ZRANK', queue, jobId) or '', account_running,
  account_concurrency }
`,
);

export type PolledJob = { readonly job: Job; readonly position: QueuePosition; readonly rates: Rates } | RefusedCall;

/** Authorizes the caller and reads one of the account's jobs, in one step. */
export async function pollJob(store: RecordStore, caller: Caller, jobId: string): Promise<PolledJob> {
  const reply = await run(store, pollScript, { ...caller, jobId });
  const refused = readRefused(reply);
  if (refused) return refused;
  const [, , , , fields, rank, running, concurrency] = reply;
  const position = { before: number(rank), running: Number(running), concurrency: number(concurrency) };
  return { job: jobOf(pairs(fields)), position, rates: readRates(reply) };
}
