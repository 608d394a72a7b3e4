import { statistics } from '../lua/statistics.ts';
import { type Change, changeOf, type RecordStore, run, script } from '../script.ts';
import { repeatKey } from './admit-call.ts';
import type { HeldCall } from './charge-call.ts';

/**
 * Gives back the hold of a synchronous call that did not answer 200, once. With a log status it counts in the statistics;
 * without one the call died and was not answered. The answer stored for its Idempotency-Key is forgotten.
 * Answers {'released'} or {'gone'}.
 */
const releaseScript = script(
  'release',
  'always',
  ['account', 'calls', 'stats', 'repeats'] as const,
  ['accountId', 'id', 'log', 'took'] as const,
  /* lua */ `${statistics}
if redis.call('ZREM', calls, accountId .. '/' .. id) == 0 then return { 'gone' } end
redis.call('HINCRBY', account, 'held', -1)
if log ~= '' then count_answer(log, tonumber(took)) end
if redis.call('HGET', repeats, 'id') == id then redis.call('DEL', repeats) end
return { 'released' }
`,
);

/** Gives the hold of a synchronous call back, once; `log` is the status of its answer, `null` when it was not answered. */
export async function releaseCall(
  store: RecordStore,
  call: HeldCall,
  log: number | null,
  tookMs = 0,
): Promise<Change<'gone'>> {
  const reply = await run(store, releaseScript, {
    accountId: call.accountId,
    endpoint: call.endpoint,
    repeats: repeatKey(call.accountId, call.repeat),
    id: call.id,
    log: log ?? '',
    took: Math.round(tookMs),
  });
  return changeOf(reply, 'released');
}
