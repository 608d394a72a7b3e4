import { keys } from '../keys.ts';
import { fairShare, fairShareKeyNames } from '../lua/fair-share.ts';
import { type RecordStore, readDue, run, script } from '../script.ts';

/**
 * Puts a job whose wait before another attempt is over back at the head of its account's queue.
 * Answers {'queued'}, {'early'} or {'not_found'}.
 */
const requeueScript = script(
  'requeue',
  'always',
  [...fairShareKeyNames, 'job', 'delayed'] as const,
  ['accountId', 'jobId'] as const,
  /* lua */ `${fairShare}
local at = redis.call('ZSCORE', delayed, jobId)
local seen = redis.call('HMGET', job, 'account', 'created_at')
if not at or seen[1] ~= accountId then return { 'not_found' } end
if now < tonumber(at) then return { 'early' } end
redis.call('ZREM', delayed, jobId)
redis.call('ZADD', queue, seen[2], jobId)
local owner = redis.call('HMGET', account, 'running', 'concurrency', 'tag')
update_ready(accountId, tonumber(owner[1]), owner[2], owner[3])
return { 'queued' }
`,
);

/** Puts up to 100 jobs whose wait before another attempt is over back into their queues. Returns how many. */
export async function requeueDelayed(store: RecordStore): Promise<number> {
  let moved = 0;
  for (const jobId of await readDue(store, keys.delayed, store.clock.now())) {
    const accountId = String(await store.connection.read(['HGET', keys.job(jobId), 'account']));
    const [word] = await run(store, requeueScript, { accountId, jobId });
    if (word === 'queued') moved++;
  }
  return moved;
}
