import { script } from '../script.ts';

/** Ends the block of an address and forgets its failures. Answers {'cleared'} or {'not_found'}. */
export const clearBlock = script(
  'clear-block',
  'always',
  ['failures', 'blocks'] as const,
  ['address', 'blocksChannel'] as const,
  /* lua */ `
local blocked = redis.call('ZREM', blocks, address)
if blocked + redis.call('DEL', failures) == 0 then return { 'not_found' } end
redis.call('PUBLISH', blocksChannel, address)
return { 'cleared' }
`,
);
