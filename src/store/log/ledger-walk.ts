import { type AccountCursor, firstAccount } from '../accounts/read-accounts.ts';
import { keys } from '../keys.ts';
import type { RecordStore } from '../script.ts';

/** Progress of the check of all ledgers, kept in the record so that another controller goes on with it; times are milliseconds. */
export interface LedgerWalk {
  /** Accounts from here on are to be checked; `null` while no check is under way. */
  readonly place: AccountCursor | null;
  /** Problems that this check has found so far. */
  readonly problems: number;
  /** Problems that the last complete check found, `null` before the first one. */
  readonly lastProblems: number | null;
  /** Time of the last complete check; before the first one, when that began. */
  readonly since: number;
}

export async function readLedgerWalk(store: RecordStore): Promise<LedgerWalk> {
  const json = await store.connection.read(['GET', keys.ledgerWalk]);
  if (json !== null) return JSON.parse(json) as LedgerWalk;
  return { place: firstAccount, problems: 0, lastProblems: null, since: store.clock.now() };
}

export async function saveLedgerWalk(store: RecordStore, walk: LedgerWalk): Promise<void> {
  await store.connection.send(['SET', keys.ledgerWalk, JSON.stringify(walk)]);
}
