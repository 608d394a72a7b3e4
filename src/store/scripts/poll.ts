import { doorArgs, doorKeys, freeDoor } from '../lua/door.ts';
import { script } from '../script.ts';

/**
 * A poll: the door, the job and its place in the account's queue, in one call. Another account's job is 'not_found' (D14).
 * Answers {'entered', '', '', limits ×4, fields of the job, place in the queue or '', how many jobs of
 * the account run, its own limit of those or ''}.
 */
export const poll = script(
  'poll',
  'always',
  [...doorKeys, 'job', 'queue'],
  [...doorArgs, 'jobId'],
  /* lua */ `${freeDoor({ account: 'running concurrency' })}
local fields = redis.call('HGETALL', job)
if #fields == 0 or redis.call('HGET', job, 'account') ~= accountId then return { 'not_found', '', '', unpack(limits) } end
local place = redis.call('ZRANK', queue, jobId)
return { 'entered', '', '', limits[1], limits[2], limits[3], limits[4], fields, place or '', account_running, account_concurrency }
`,
);
