import { keys, shortId } from '../keys.ts';
import { ageArgNames, ageValues, beforeAge } from '../lua/age.ts';
import { type RecordStore, run, script, text } from '../script.ts';

/** Removes a batch whose end has reached an age, with its webhook. Answers {'removed'} or {'kept'}. */
const removeBatchScript = script(
  'remove-batch',
  'always',
  ['batch', 'endedBatches', 'webhooks', 'webhook', 'deliveries'],
  ['batchId', 'shortId', ...ageArgNames],
)`${beforeAge}
local at = redis.call('ZSCORE', endedBatches, batchId)
if at and tonumber(at) > before then return { 'kept' } end
local receiver = redis.call('HGET', batch, 'receiver')
if receiver and receiver ~= '' then redis.call('ZREM', webhooks, receiver .. '/' .. batchId) end
redis.call('ZREM', deliveries, shortId)
redis.call('DEL', batch, webhook)
redis.call('ZREM', endedBatches, batchId)
return { 'removed' }
`;

/** Removes an ended batch; its jobs go by themselves. False when its end is younger. */
export async function removeBatch(store: RecordStore, batchId: string, ageMs: number): Promise<boolean> {
  const accountId = text(await store.connection.read(['HGET', keys.batch(batchId), 'account']));
  const ids = { batchId, jobId: batchId, shortId: shortId(batchId), accountId };
  const [word] = await run(store, removeBatchScript, { ...ids, ...ageValues(store, ageMs) });
  return word === 'removed';
}
