import { isRefusal } from '../base/errors.ts';
import { hideGauges } from '../base/metrics.ts';
import { startPeriodicTask } from '../base/periodic-task.ts';
import { type AccountCursor, firstAccount, listLedgerPage } from '../store/accounts/read-accounts.ts';
import { type LedgerWalk, readLedgerWalk, saveLedgerWalk } from '../store/log/ledger-walk.ts';
import { verifyLedger } from '../store/log/verify-ledger.ts';
import { reportUpkeep, type UpkeepParts } from '../store/upkeep-parts.ts';

const defaultTickMs = 2_000;
const everyMs = 3_600_000;

interface LedgerCheckOptions extends UpkeepParts {
  readonly isLeading: () => boolean;
  readonly tickMs?: number;
}

/** While this controller leads: verifies every ledger once an hour. */
export function startLedgerCheck(options: LedgerCheckOptions): { close(): Promise<void> } {
  const { store, metrics, tickMs = defaultTickMs } = options;
  const goOn = makeLedgerWalker(options);
  const look = (isClosing: () => boolean) => goOn(() => options.isLeading() && !isClosing());
  const sentence = 'the check of all ledgers broke off: it goes on where it stopped';
  const check = startPeriodicTask(look, tickMs, reportUpkeep(options, 'verify', sentence));
  const refresh = async () => {
    if (options.isLeading()) {
      const { since, lastProblems } = await readLedgerWalk(store);
      metrics.ledger_verify_age_seconds.set(Math.max(0, (store.clock.now() - since) / 1000));
      if (lastProblems !== null) metrics.ledger_problems.set(lastProblems);
    }
    // Asked again: the lead may be lost while the record is read.
    if (!options.isLeading()) hideGauges([metrics.ledger_verify_age_seconds, metrics.ledger_problems]);
  };
  // A record that cannot be read leaves the last age while this controller leads: the other gauges warn.
  const refreshQuietly = () => refresh().catch(() => {});
  metrics.refreshers.add(refreshQuietly);
  return {
    async close() {
      metrics.refreshers.delete(refreshQuietly);
      await check.close();
    },
  };
}

/** Goes from account to account, one at a time, so that nothing else waits for long. */
function makeLedgerWalker({ store, log }: LedgerCheckOptions) {
  let walk: LedgerWalk | null = null;
  /** Accounts of the page at the place of the walk that are not checked yet, and the place behind it. */
  let page: { readonly accounts: [slug: string, id: string][]; readonly next: AccountCursor | null } | null = null;
  /** An account that cannot be checked has a problem, and stops no other. */
  const problemsOf = async ([slug, id]: [slug: string, id: string]): Promise<number> => {
    try {
      const { problems } = await verifyLedger(store, id);
      for (const problem of problems) log.error('a ledger does not balance', { slug, problem });
      return problems.length;
    } catch (error) {
      if (isRefusal(error, 'unavailable')) throw error;
      log.error('a ledger cannot be checked', { slug, error });
      return 1;
    }
  };
  /** Goes on with the check that is under way, or begins the next one when that is due; throws when Redis is away. */
  return async (mayGoOn: () => boolean): Promise<void> => {
    if (!mayGoOn()) {
      // Another controller may go on from the record.
      [walk, page] = [null, null];
      return;
    }
    walk ??= await readLedgerWalk(store);
    if (walk.place === null) {
      const age = store.clock.now() - walk.since;
      // Below 0: the clock of Redis went back since.
      if (age >= 0 && age < everyMs) return;
      walk = { ...walk, place: firstAccount, problems: 0 };
    }
    // Its age counts from the first beginning.
    await saveLedgerWalk(store, walk);
    while (walk.place !== null) {
      page ??= await listLedgerPage(store, walk.place);
      // An account is taken off the page once it is checked.
      for (let first = page.accounts[0]; first !== undefined; first = page.accounts[0]) {
        if (!mayGoOn()) return;
        walk = { ...walk, problems: walk.problems + (await problemsOf(first)) };
        page.accounts.shift();
      }
      walk = { ...walk, place: page.next };
      if (walk.place === null) walk = { ...walk, lastProblems: walk.problems, since: store.clock.now() };
      page = null;
      await saveLedgerWalk(store, walk);
    }
  };
}
