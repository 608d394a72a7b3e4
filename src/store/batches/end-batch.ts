import { shortId } from '../keys.ts';
import { dueWebhookKeyNames, makeWebhookDue, undoWebhookDue } from '../lua/make-webhook-due.ts';
import { type RecordStore, run, script } from '../script.ts';
import { hasBatchEnded, readBatch, summarizeBatch } from './read-batch.ts';

/**
 * Ends a batch whose jobs have all ended, keeps how many of them completed, and makes its webhook due. Its caller has seen that
 * none is open, and none ever opens again. Answers {'ended'}, or {'known'} when it ended before.
 */
const endBatchScript = script(
  'end-batch',
  'always',
  ['batch', 'openBatches', 'endedBatches', ...dueWebhookKeyNames],
  ['batchId', 'shortId', 'completed', 'failed', 'webhooksChannel'],
)`
local since = redis.call('ZSCORE', openBatches, batchId)
if not since then return { 'known' } end
local at = string.format('%d', now)
local receiver = redis.call('HGET', batch, 'receiver') or ''
undos[1] = function()
  redis.pcall('ZADD', openBatches, since, batchId)
  redis.pcall('ZREM', endedBatches, batchId)
  redis.pcall('HDEL', batch, 'completed', 'failed')
  ${undoWebhookDue('receiver', 'batchId')}
end
redis.call('ZREM', openBatches, batchId)
redis.call('ZADD', endedBatches, at, batchId)
if completed ~= '' then redis.call('HSET', batch, 'completed', completed, 'failed', failed) end
${makeWebhookDue('receiver', 'batchId')}
return { 'ended' }
`;

/** Ends a batch if none of its jobs is open; false while one is, or when it ended before. */
export async function endBatch(store: RecordStore, batchId: string): Promise<boolean> {
  const batch = await readBatch(store, batchId);
  if (batch !== null && !(await hasBatchEnded(store, batch))) return false;
  const counts = batch === null ? null : (await summarizeBatch(store, batch)).counts;
  const ids = { batchId, jobId: batchId, shortId: shortId(batchId), accountId: batch?.account ?? '' };
  const ends = { completed: counts?.completed ?? '', failed: counts?.failed ?? '' };
  const [word] = await run(store, endBatchScript, { ...ids, ...ends });
  return word === 'ended';
}
