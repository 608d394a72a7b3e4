import { type Caller, doorKeys, type Rates, type Refused, readRates, readRefused } from './door.ts';
import { run, type Store } from './script.ts';
import { enter as enterScript } from './scripts/enter.ts';

/** Judges the caller of a free call that reads nothing else. */
export async function enter(store: Store, caller: Caller): Promise<{ rates: Rates; mayReadStats: boolean } | Refused> {
  const reply = await run(store, enterScript, doorKeys(caller), { accountId: caller.account });
  return readRefused(reply) ?? { rates: readRates(reply), mayReadStats: reply[7] === '1' };
}
