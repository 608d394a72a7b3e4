import { maxWaitMs } from '../../model/next.ts';
import { keys } from '../keys.ts';
import { isEarly } from '../lua/age.ts';
import { fairShare, fairShareKeyNames, queueScore } from '../lua/fair-share.ts';
import { readDueNow } from '../redis/read-due.ts';
import { type RecordStore, run, script, text } from '../script.ts';
import { mendJob } from './mend-job.ts';
import { workShift } from './work-ranges.ts';

/**
 * Puts a job whose wait before another attempt is over back at the head of its account's queue. After the clock went back,
 * a wait that would be longer than any wait is over. Answers {'queued'}, {'early'}, {'damaged'} when its time or its account cannot be read, or
 * {'not_found'}.
 */
const requeueDelayedScript = script(
  'requeue-delayed',
  'always',
  [...fairShareKeyNames, 'openWork', 'job'],
  ['accountId', 'jobId'],
)`${fairShare}
local score = redis.call('ZSCORE', openWork, jobId)
local at = tonumber(score or 0) - ${workShift}
local seen = redis.call('HMGET', job, 'account', 'created_at')
if at < 0 or seen[1] ~= accountId then return { 'not_found' } end
if ${isEarly('at', maxWaitMs)} then return { 'early' } end
local owner = redis.call('HMGET', account, 'running', 'concurrency', 'tag')
if not tonumber(seen[2] or '') or not owner[1] then return { 'damaged' } end
undos[1] = function()
  redis.pcall('ZADD', openWork, score, jobId)
  redis.pcall('ZREM', queue, jobId)
  update_ready(accountId, tonumber(owner[1]), owner[2], owner[3])
end
redis.call('ZADD', openWork, seen[2], jobId)
redis.call('ZADD', queue, ${queueScore.ofReturned('seen[2]')}, jobId)
update_ready(accountId, tonumber(owner[1]), owner[2], owner[3])
return { 'queued' }
`;

/** Puts up to 100 jobs whose wait before another attempt is over back into their queues. Returns how many. One that is damaged is mended: it keeps no other from its turn. */
export async function requeueDelayed(store: RecordStore): Promise<number> {
  let moved = 0;
  for (const jobId of await readDueNow(store, keys.openWork, maxWaitMs, workShift)) {
    let word = await requeue(store, jobId);
    if (word === 'damaged') {
      await mendJob(store, jobId);
      word = await requeue(store, jobId);
    }
    if (word === 'queued') moved++;
  }
  return moved;
}

async function requeue(store: RecordStore, jobId: string): Promise<string> {
  const accountId = text(await store.connection.read(['HGET', keys.job(jobId), 'account']));
  const [word] = await run(store, requeueDelayedScript, { accountId, jobId });
  return text(word);
}
