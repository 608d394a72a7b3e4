import { refuse } from '../../base/errors.ts';
import { periodAt } from '../../model/billing-period.ts';
import { keys } from '../keys.ts';
import { books, booksKeys } from '../lua/books.ts';
import { inTime, Late } from '../redis/timeout.ts';
import { number, type RecordStore, run, type ScriptReply, script, text } from '../script.ts';

/**
 * Rolls an account into its next billing period (D50): what is left of the quota lapses, used returns to 0, the plan
 * grants its quota anew. Only when the present one has ended, so a repetition changes nothing.
 * Answers {'rolled'}, {'already_rolled'} or {'not_found'}.
 */
const rollScript = script(
  'roll',
  'always',
  [...booksKeys, 'periods'] as const,
  ['accountId', 'start', 'finish'] as const,
  /* lua */ `${books}
local state = open_books()
if not state then return { 'already_rolled' } end
if state[1] ~= 'roll' then return state end
set_quota(0)
keep('used', 0)
keep('period_start', start)
keep('period_end', finish)
redis.call('ZADD', periods, finish, accountId)
sync()
return { 'rolled' }
`,
);

/** Keys of the books of one account, as every script that moves money takes them. */
export function bookKeys(account: string) {
  return {
    account: keys.account(account),
    plans: keys.plans,
    packs: keys.packs(account),
    packQueue: keys.packQueue(account),
    ledger: keys.ledger(account),
    topup: keys.topup(account),
    purchases: keys.purchases,
  };
}

const allMilliseconds = 2_000;

/**
 * Runs a step that may find the account's billing period ended: then the period is rolled and the step runs again.
 * Periods roll by themselves in this way, whether the sweep has come by or not. All of it takes two seconds at most, or
 * fails with `unavailable`; nothing is begun after that.
 */
export async function rolling(
  store: RecordStore,
  account: string,
  step: () => Promise<ScriptReply>,
): Promise<ScriptReply> {
  const began = performance.now();
  const first = await step();
  if (first[0] !== 'roll') return first;
  let isOver = false;
  const rollAndRun = async () => {
    for (let tries = 0; tries < 5 && !isOver; tries++) {
      await rollPeriod(store, account);
      if (isOver) break;
      const reply = await step();
      if (reply[0] !== 'roll') return reply;
    }
    throw new Error(`the billing period of account ${account} does not roll`);
  };
  try {
    return await inTime(rollAndRun(), allMilliseconds - (performance.now() - began));
  } catch (error) {
    throw error instanceof Late ? Object.assign(refuse('unavailable'), { cause: error }) : error;
  } finally {
    isOver = true;
  }
}

/** When the billing period of an account began, as far as it was rolled; `null` without a plan. */
export async function readPeriodStart(store: RecordStore, account: string): Promise<number | null> {
  const key = keys.account(account);
  return number(await store.connection.read(['HGET', key, 'period_start']));
}

/** Rolls an account into the period that holds the present moment, when its last one has ended. */
export async function rollPeriod(store: RecordStore, account: string): Promise<boolean> {
  const [ended, anchor] = (await store.connection.read([
    'HMGET',
    keys.account(account),
    'period_end',
    'period_anchor',
  ])) as (string | null)[];
  if (!ended || !anchor) return false;
  // Redis's clock decides whether the period has ended; ours only names the next one, so it may not lie before that.
  const next = periodAt(Number(anchor), Math.max(store.clock.now(), Number(ended)));
  const reply = await run(
    store,
    rollScript,
    { ...bookKeys(account), periods: keys.periods },
    { accountId: account, start: next.start, finish: next.end },
  );
  return text(reply[0]) === 'rolled';
}
