import { type RecordStore, run, script } from '../script.ts';

/** Ends the block of an address and forgets its failures. Answers {'cleared'} or {'not_found'}. */
const clearBlockScript = script(
  'clear-block',
  'always',
  ['failures', 'failing', 'blocks'] as const,
  ['address', 'blocksChannel'] as const,
  /* lua */ `
local blocked = redis.call('ZREM', blocks, address)
redis.call('ZREM', failing, address)
if blocked + redis.call('HDEL', failures, address) == 0 then return { 'not_found' } end
redis.call('PUBLISH', blocksChannel, address)
return { 'cleared' }
`,
);

/** Ends the block of an address and forgets its failures; returns false when it had neither. */
export async function clearBlock(store: RecordStore, address: string): Promise<boolean> {
  const [word] = await run(store, clearBlockScript, { address });
  return word === 'cleared';
}
