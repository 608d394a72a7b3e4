import { isRefusalCode, type RefusalCode } from '../../base/errors.ts';
import { keys } from '../keys.ts';
import { number, type RecordStore, type Reply, run, text } from '../script.ts';
import { enter as enterScript } from '../scripts/enter.ts';

/** Who asks: the account named in the key's text and the hash of the text. */
export interface Caller {
  readonly account: string;
  readonly hash: string;
}

/** What is left of one of the plan's rate windows after this call. */
export interface Rate {
  readonly limit: number;
  readonly left: number;
}

export interface Rates {
  readonly perSecond: Rate | null;
  readonly perMinute: Rate | null;
}

/** A refusal in the record's words; detail names the quota or the rate that was reached. */
export interface Refused {
  readonly refused: RefusalCode;
  readonly detail: string;
  readonly retryAfterSeconds: number | null;
  readonly rates: Rates;
}

/** Keys that the door of each script takes. */
export function doorKeys(caller: Caller) {
  return {
    account: keys.account(caller.account),
    key: keys.key(caller.hash),
    rate: keys.rate(caller.account),
    plans: keys.plans,
  };
}

/** The refusal that a reply tells of, or `null` when it tells of something else. */
export function readRefused(reply: Reply): Refused | null {
  const word = text(reply[0]);
  if (!isRefusalCode(word)) return null;
  const wait = number(reply[2]);
  return {
    refused: word,
    detail: text(reply[1]),
    retryAfterSeconds: wait === null ? null : Math.max(1, Math.ceil(wait / 1000)),
    rates: readRates(reply),
  };
}

/** The rate windows in elements 3 to 6 of a reply. */
export function readRates(reply: Reply): Rates {
  return { perSecond: rate(reply[3], reply[4]), perMinute: rate(reply[5], reply[6]) };
}

function rate(limit: unknown, left: unknown): Rate | null {
  const most = number(limit);
  return most === null ? null : { limit: most, left: number(left) ?? 0 };
}

/** Judges the caller of a free call that reads nothing else. */
export async function enter(
  store: RecordStore,
  caller: Caller,
): Promise<{ rates: Rates; mayReadStats: boolean } | Refused> {
  const reply = await run(store, enterScript, doorKeys(caller), { accountId: caller.account });
  return readRefused(reply) ?? { rates: readRates(reply), mayReadStats: reply[7] === '1' };
}
