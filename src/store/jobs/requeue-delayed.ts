import { maxWaitMs } from '../../model/next.ts';
import { keys } from '../keys.ts';
import { fairShare, fairShareKeyNames } from '../lua/fair-share.ts';
import { type RecordStore, readDue, run, script } from '../script.ts';

/**
 * Puts a job whose wait before another attempt is over back at the head of its account's queue. After the clock went back,
 * a wait that would be longer than any wait is over. Answers {'queued'}, {'early'} or {'not_found'}.
 */
const requeueScript = script(
  'requeue',
  'always',
  [...fairShareKeyNames, 'queued', 'job', 'delayed'] as const,
  ['accountId', 'jobId'] as const,
  /* lua */ `${fairShare}
local at = redis.call('ZSCORE', delayed, jobId)
local seen = redis.call('HMGET', job, 'account', 'created_at')
if not at or seen[1] ~= accountId then return { 'not_found' } end
if now < tonumber(at) and tonumber(at) - now <= ${maxWaitMs} then return { 'early' } end
local owner = redis.call('HMGET', account, 'running', 'concurrency', 'tag')
undos[1] = function()
  redis.pcall('ZADD', delayed, at, jobId)
  redis.pcall('ZREM', queue, jobId)
  redis.pcall('ZREM', queued, jobId)
  update_ready(accountId, tonumber(owner[1]), owner[2], owner[3])
end
redis.call('ZREM', delayed, jobId)
redis.call('ZADD', queue, seen[2], jobId)
redis.call('ZADD', queued, seen[2], jobId)
update_ready(accountId, tonumber(owner[1]), owner[2], owner[3])
return { 'queued' }
`,
);

/** Puts up to 100 jobs whose wait before another attempt is over back into their queues. Returns how many. */
export async function requeueDelayed(store: RecordStore): Promise<number> {
  let moved = 0;
  const now = store.clock.now();
  const tooLate = ['ZREVRANGEBYSCORE', keys.delayed, '+inf', `(${now + maxWaitMs}`, 'LIMIT', '0', '100'] as const;
  const due = [...(await readDue(store, keys.delayed, now)), ...(await store.connection.read(tooLate))];
  for (const jobId of due) {
    const accountId = String(await store.connection.read(['HGET', keys.job(jobId), 'account']));
    const [word] = await run(store, requeueScript, { accountId, jobId });
    if (word === 'queued') moved++;
  }
  return moved;
}
