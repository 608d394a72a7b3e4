import { count } from '../lua/count.ts';
import { script } from '../script.ts';

/**
 * Gives back the hold of a synchronous call that did not answer 200, once. With a log status it counts in the statistics;
 * without one the call died and nobody answered. What its Idempotency-Key remembered is forgotten.
 * Answers {'released'} or {'gone'}.
 */
export const release = script(
  'release',
  'always',
  ['account', 'calls', 'stats', 'repeats'] as const,
  ['accountId', 'id', 'log', 'took'] as const,
  /* lua */ `${count}
if redis.call('ZREM', calls, accountId .. '/' .. id) == 0 then return { 'gone' } end
redis.call('HINCRBY', account, 'held', -1)
if log ~= '' then count(log, tonumber(took)) end
if redis.call('HGET', repeats, 'id') == id then redis.call('DEL', repeats) end
return { 'released' }
`,
);
