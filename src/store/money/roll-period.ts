import { refuseWithout } from '../../base/errors.ts';
import { periodAt } from '../../model/billing-period.ts';
import { keys } from '../keys.ts';
import { balanceKeyNames, balances, quotaLeft } from '../lua/balances.ts';
import { RedisTimeout, withTimeout } from '../redis/redis-time.ts';
import { number, type RecordStore, run, type ScriptReply, script, text } from '../script.ts';

/**
 * Rolls an account into its next billing period (D50): the unused quota lapses, `used` returns to 0 and the plan grants its
 * quota again. Nothing happens before the present period has ended, so a repetition changes nothing.
 * Answers {'rolled', credits that lapsed}, {'early', now} before the one that begins, {'already_rolled'} or {'not_found'}.
 */
const rollPeriodScript = script(
  'roll-period',
  'always',
  [...balanceKeyNames, 'periods'],
  ['accountId', 'start', 'finish'],
)`${balances}
local state = read_balances()
if not state then return { 'already_rolled' } end
if state[1] ~= 'roll' then return state end
if now < tonumber(start) then return { 'early', now } end
local lapsed = ${quotaLeft}
set_quota(0)
set_field('used', 0)
set_field('period_start', start)
set_field('period_end', finish)
book_plan_quota()
undos[1] = function() redis.pcall('ZADD', periods, values[2], accountId) end
redis.call('ZADD', periods, finish, accountId)
write_balances()
return { 'rolled', lapsed }
`;

/** A roll may end this much later than another call: half a second less than 2 s (D69) are the timeout of one. */
const lastTryMs = 500;

/**
 * Runs a script that may find the account's billing period over: the period is then rolled and the script runs again, so
 * billing never waits for the sweep. Fails with `unavailable` within 2 s, and starts nothing after that.
 */
export async function withRolledPeriod(
  store: RecordStore,
  accountId: string,
  step: () => Promise<ScriptReply>,
): Promise<ScriptReply> {
  const began = performance.now();
  const first = await step();
  if (first[0] !== 'roll') return first;
  let isOver = false;
  const rollAndRun = async () => {
    for (let tries = 0; tries < 5 && !isOver; tries++) {
      await rollPeriod(store, accountId);
      if (isOver) break;
      const reply = await step();
      if (reply[0] !== 'roll') return reply;
    }
    throw new Error(`the billing period of account ${accountId} does not roll`);
  };
  try {
    return await withTimeout(
      rollAndRun(),
      (store.withinMs ?? store.connection.timeoutMs + lastTryMs) - (performance.now() - began),
    );
  } catch (error) {
    throw error instanceof RedisTimeout ? refuseWithout('redis', error) : error;
  } finally {
    isOver = true;
  }
}

/** Returns the start of the account's last rolled billing period, or `null` without a plan and once the account is removed. */
export async function readPeriodStart(store: RecordStore, accountId: string): Promise<number | null> {
  const fields = ['period_start', 'period_end'];
  const [start, end] = await store.connection.read(['HMGET', keys.account(accountId), ...fields]);
  // A removed account keeps the start of its last period, which no longer rolls.
  return text(end) === '' ? null : number(start);
}

/** Rolls an account into the present billing period; returns false when its period has not ended. */
export async function rollPeriod(store: RecordStore, accountId: string): Promise<boolean> {
  const key = keys.account(accountId);
  const [ended, anchor] = await store.connection.read(['HMGET', key, 'period_end', 'period_anchor']);
  if (!ended || !anchor) return false;
  const rollAt = (now: number) => {
    // Redis's clock decides that the period has ended; ours may be slower, and must not name a period before that end.
    const next = periodAt(Number(anchor), Math.max(now, Number(ended)));
    return run(store, rollPeriodScript, { accountId, start: next.start, finish: next.end });
  };
  let [word, said] = await rollAt(store.clock.now());
  // Ours was faster: the clock went back since it was read.
  if (text(word) === 'early') [word, said] = await rollAt(Number(said));
  if (text(word) !== 'rolled') return false;
  store.observeLapse?.(Number(said));
  return true;
}
