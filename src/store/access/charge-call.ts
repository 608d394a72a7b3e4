import type { Endpoint } from '../../model/job.ts';
import { balanceKeyNames, balances } from '../lua/balances.ts';
import { statistics } from '../lua/statistics.ts';
import { withRolledPeriod } from '../money/roll-period.ts';
import { type Change, changeOf, type RecordStore, run, script, text } from '../script.ts';
import { type Repeat, repeatKey } from './admit-call.ts';

/**
 * Ends a synchronous call that answers 200: turns its hold into a charge, with ledger, request-log line and statistics.
 * A hold past its deadline is not charged. Answers {'charged', balance}, {'gone'} or {'roll'}.
 */
const chargeScript = script(
  'charge',
  'always',
  [...balanceKeyNames, 'calls', 'paidLines', 'stats', 'repeats'] as const,
  ['accountId', 'id', 'line', 'took', 'ip', 'answer'] as const,
  /* lua */ `${balances}${statistics}
local deadline = redis.call('ZSCORE', calls, accountId .. '/' .. id)
if not deadline or now >= tonumber(deadline) then return { 'gone' } end
local refused = read_balances()
if refused then return refused end
redis.call('ZREM', calls, accountId .. '/' .. id)
set_field('held', b.held - 1)
local balance = draw(id)
redis.call('XADD', paidLines, '*', 'at', now, 'endpoint', line, 'status', 200, 'duration_ms', took, 'ip', ip, 'credits', 1)
count_answer(200, tonumber(took))
if redis.call('HGET', repeats, 'id') == id then
  if #answer > 0 and #answer <= 65536 then
    redis.call('HSET', repeats, 'answer', answer, 'until', now + 86400000)
  else
    redis.call('DEL', repeats)
  end
end
return { 'charged', balance }
`,
);

/** A synchronous call that was admitted and is about to end. */
export interface HeldCall {
  readonly id: string;
  readonly accountId: string;
  readonly endpoint: Endpoint;
  readonly repeat: Repeat | null;
}

/** Charges a synchronous call right before its answer; refused when its hold has ended, then nothing is charged. */
export async function chargeCall(
  store: RecordStore,
  call: HeldCall & { keyId: string; line: string; ip: string; answer: string },
  tookMs: number,
): Promise<Change<'gone', { readonly balance: string }>> {
  const reply = await withRolledPeriod(store, call.accountId, () =>
    run(store, chargeScript, {
      accountId: call.accountId,
      keyId: call.keyId,
      endpoint: call.endpoint,
      repeats: repeatKey(call.accountId, call.repeat),
      id: call.id,
      line: call.line,
      took: Math.round(tookMs),
      ip: call.ip,
      answer: call.answer,
    }),
  );
  return changeOf(reply, 'charged', { balance: text(reply[1]) });
}
