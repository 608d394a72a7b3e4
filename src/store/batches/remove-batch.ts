import { keys, shortId } from '../keys.ts';
import { type RecordStore, run, script, text } from '../script.ts';

/** Removes a batch that ended before a moment, with its webhook. Answers {'removed'} or {'kept'}. */
const removeBatchScript = script(
  'remove-batch',
  'always',
  ['batch', 'endedBatches', 'webhooks', 'webhook', 'deliveries'] as const,
  ['batchId', 'shortId', 'before'] as const,
  /* lua */ `
local at = redis.call('ZSCORE', endedBatches, batchId)
if at and tonumber(at) > tonumber(before) then return { 'kept' } end
local receiver = redis.call('HGET', batch, 'receiver')
if receiver and receiver ~= '' then redis.call('ZREM', webhooks, receiver .. '/' .. batchId) end
redis.call('ZREM', deliveries, shortId)
redis.call('DEL', batch, webhook)
redis.call('ZREM', endedBatches, batchId)
return { 'removed' }
`,
);

/** Removes an ended batch; its jobs go by themselves. False when it ended later. */
export async function removeBatch(store: RecordStore, batchId: string, before: number): Promise<boolean> {
  const accountId = text(await store.connection.read(['HGET', keys.batch(batchId), 'account']));
  const ids = { batchId, jobId: batchId, shortId: shortId(batchId), accountId };
  const [word] = await run(store, removeBatchScript, { ...ids, before });
  return word === 'removed';
}
