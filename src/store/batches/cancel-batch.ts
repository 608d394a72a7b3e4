import { type RecordStore, run, script } from '../script.ts';

/** Marks a batch as cancelled while it has not ended. Answers {'cancelled'} or {'ended'}. */
const cancelBatchScript = script('cancel-batch', 'always', ['batch', 'openBatches'], ['batchId'])`
if not redis.call('ZSCORE', openBatches, batchId) then return { 'ended' } end
redis.call('HSET', batch, 'cancelled', '1')
return { 'cancelled' }
`;

/** Marks a batch as cancelled; its caller then cancels the jobs that are open. */
export async function cancelBatch(store: RecordStore, batchId: string): Promise<void> {
  await run(store, cancelBatchScript, { batchId });
}
