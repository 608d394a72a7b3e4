import type { Endpoint } from '../../model/job.ts';
import { balanceKeyNames, balances } from '../lua/balances.ts';
import { statistics } from '../lua/statistics.ts';
import { findCallEntry } from '../money/ledger-entry.ts';
import { withRolledPeriod } from '../money/roll-period.ts';
import { askAgain, type Change, changeOf, type RecordStore, run, script, text } from '../script.ts';
import { type Repeat, repeatKey } from './admit-call.ts';

/**
 * Ends a synchronous call that answers 200: turns its hold into a charge, with ledger, request-log line and statistics.
 * A hold past its deadline is not charged. Answers {'charged', balance}, {'gone'}, {'not_found'} or {'roll'}.
 */
const chargeCallScript = script(
  'charge-call',
  'always',
  [...balanceKeyNames, 'calls', 'paidLines', 'lineStreams', 'stats', 'repeats'],
  ['accountId', 'id', 'line', 'took', 'ip', 'answer'],
)`${balances}${statistics}
local deadline = redis.call('ZSCORE', calls, accountId .. '/' .. id)
if not deadline or now >= tonumber(deadline) then return { 'gone' } end
local refused = read_balances()
if refused then return refused end
local repeated = redis.call('HMGET', repeats, 'id', 'until')
local is_stored = #answer > 0 and #answer <= 65536
end_hold(true)
local balance = draw(id)
local logged
undos[1] = function()
  redis.pcall('ZADD', calls, deadline, accountId .. '/' .. id)
  if logged then redis.pcall('XDEL', paidLines, logged) end
  if repeated[1] == id then redis.pcall('HSET', repeats, 'answer', 'running', 'until', repeated[2]) end
end
write_balances()
logged = append(paidLines, lineStreams, now, 'endpoint', line, 'status', 200, 'duration_ms', took, 'ip', ip, 'credits', 1)
if repeated[1] == id and is_stored then redis.call('HSET', repeats, 'answer', answer, 'until', now + 86400000) end
count_answer(200, tonumber(took), tonumber(took))
redis.call('ZREM', calls, accountId .. '/' .. id)
if repeated[1] == id and not is_stored then redis.call('DEL', repeats) end
return { 'charged', balance }
`;

/** An answer that was lost was at most this long under way. */
const maxCallMs = 10_000;

/** A synchronous call that was admitted and is about to end. */
export interface HeldCall {
  readonly id: string;
  readonly accountId: string;
  readonly endpoint: Endpoint;
  readonly repeat: Repeat | null;
}

interface CallToCharge extends HeldCall {
  readonly keyId: string;
  readonly line: string;
  readonly ip: string;
  readonly answer: string;
}

/**
 * Charges a synchronous call right before its answer; refused when its hold has ended, then nothing is charged. A lost answer
 * is asked for once more: the ledger tells whether a hold that is gone was charged.
 */
export function chargeCall(
  store: RecordStore,
  call: CallToCharge,
  tookMs: number,
): Promise<Change<'gone', { readonly balance: string }>> {
  return askAgain(store, async (asked, again) => {
    const charged = await chargeOnce(asked, call, tookMs);
    if (!again || charged.done) return charged;
    const { id, accountId: account } = call;
    const entry = await findCallEntry(store, { id, account, created_at: store.clock.now() - maxCallMs });
    return entry === null ? charged : { done: true, balance: entry.balance };
  });
}

async function chargeOnce(
  store: RecordStore,
  call: CallToCharge,
  tookMs: number,
): Promise<Change<'gone', { readonly balance: string }>> {
  const reply = await withRolledPeriod(store, call.accountId, () =>
    run(store, chargeCallScript, {
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
