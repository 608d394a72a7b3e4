import { inParallel } from '../base/in-parallel.ts';
import { writeTime } from '../model/timestamp.ts';
import { findLedgerAccount, listLedgerAccounts } from '../store/accounts/read-accounts.ts';
import { readLedger } from '../store/log/read-ledger.ts';
import { verifyLedger } from '../store/log/verify-ledger.ts';
import { command } from './command.ts';
import { readsAtOnce, slug, wholeNumber } from './command-values.ts';
import { listResult, timeText } from './text-table.ts';

export const ledgerCommands = {
  'ledger show': command({
    text: 'Shows the ledger of an account, newest entry first, archived entries and removed accounts included.',
    json: '[{at, entry, kind, balance, amount, job, pack, reason}]',
    operands: { SLUG: slug },
    options: { limit: { value: 'N', read: wholeNumber(1, 10_000), text: 'Most entries; 50 unless given.' } },
    run: async (given, { store, readArchivedPart }) => {
      const account = await findLedgerAccount(store, given.SLUG);
      const entries = await readLedger(store, account, given.limit ?? 50, readArchivedPart);
      return listResult(
        entries,
        (entry) => ({ reason: null, ...entry, at: writeTime(entry.at) }),
        ({ at, entry: _, reason = null, ...row }) => ({ 'at (UTC)': timeText(at), ...row, reason }),
        'No money has moved.',
      );
    },
  }),
  'ledger verify': command({
    text: 'Recomputes every balance from the whole ledger, archived entries included, and names each difference; exit code 1 when there is one.',
    json: '{accounts, entries, ok, problems}',
    operands: { SLUG: { ...slug, text: 'Slug of the account; all accounts unless given.', optional: true } },
    run: async (given, { store, readArchivedPart, progress }) => {
      const { SLUG } = given;
      if (SLUG !== undefined) await findLedgerAccount(store, SLUG);
      // Accounts that were removed may have had the same slug.
      const accounts = (await listLedgerAccounts(store)).filter(([name]) => SLUG === undefined || name === SLUG);
      let count = 0;
      const verified = await inParallel(readsAtOnce, accounts, async ([name, id]) => {
        const { entries, problems } = await verifyLedger(store, id, readArchivedPart);
        if (++count % readsAtOnce === 0 || count === accounts.length)
          progress(`${count} of ${accounts.length} accounts are verified`);
        return { entries, problems: problems.map((problem) => `${name}: ${problem}`) };
      });
      const problems = verified.flatMap((one) => one.problems);
      const entries = verified.reduce((sum, one) => sum + one.entries, 0);
      const ok = problems.length === 0;
      const seen = `${accounts.length} ${accounts.length === 1 ? 'account' : 'accounts'} with ${entries} entries: `;
      return {
        value: { accounts: accounts.length, entries, ok, problems },
        text: seen + (ok ? 'every balance is right.\n' : `${problems.length} problems.\n${problems.join('\n')}\n`),
        failed: !ok,
      };
    },
  }),
};
