import { notedScript, type RecordStore, runNoted } from '../script.ts';

/** Ends the block of an address and forgets its failures. Answers {'cleared'} or {'not_found'}. */
const clearBlockScript = notedScript(
  'clear-block',
  'always',
  ['failures', 'failing', 'blocks'],
  ['address', 'blocksChannel'],
)`
if not redis.call('ZSCORE', blocks, address) and redis.call('HEXISTS', failures, address) == 0 then return { 'not_found' } end
if note_change() then return { 'audit_full' } end
redis.call('ZREM', blocks, address)
redis.call('ZREM', failing, address)
redis.call('HDEL', failures, address)
redis.call('PUBLISH', blocksChannel, address)
return { 'cleared' }
`;

/** Ends the block of an address and forgets its failures; returns false when it had neither. */
export async function clearBlock(store: RecordStore, address: string): Promise<boolean> {
  const [word] = await runNoted(store, clearBlockScript, { address }, { action: 'block.clear', target: address });
  return word === 'cleared';
}
