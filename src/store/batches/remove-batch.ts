import { type RecordStore, run, script } from '../script.ts';

/** Removes a batch that ended before a moment, with its webhook. Answers {'removed'} or {'kept'}. */
const removeBatchScript = script(
  'remove-batch',
  'always',
  ['batch', 'endedBatches', 'webhooks', 'webhook'] as const,
  ['batchId', 'before'] as const,
  /* lua */ `
local at = redis.call('ZSCORE', endedBatches, batchId)
if at and tonumber(at) > tonumber(before) then return { 'kept' } end
local receiver = redis.call('HGET', batch, 'receiver')
if receiver and receiver ~= '' then redis.call('ZREM', webhooks, receiver .. '/' .. batchId) end
redis.call('DEL', batch, webhook)
redis.call('ZREM', endedBatches, batchId)
return { 'removed' }
`,
);

/** Removes an ended batch; its jobs go by themselves. False when it ended later. */
export async function removeBatch(store: RecordStore, batchId: string, before: number): Promise<boolean> {
  const [word] = await run(store, removeBatchScript, { batchId, jobId: batchId, before });
  return word === 'removed';
}
