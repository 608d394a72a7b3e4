import { usage } from '../model/money.ts';
import { writeTime } from '../model/timestamp.ts';
import { readSnapshot } from '../store/accounts/read-snapshot.ts';
import type { ReadArchivedPart } from '../store/log/archived-parts.ts';
import { readLedger } from '../store/log/read-ledger.ts';
import type { RecordStore } from '../store/script.ts';
import type { DashboardRoute } from './dashboard-app.ts';

const ledgerEntries = 100;

/** Balances of the account, and the entries of its ledger. */
export function moneyRoutes(store: RecordStore, open: ReadArchivedPart): DashboardRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/billing',
      handle: async ({ accountId }) => {
        if (accountId === '') return { status: 200, body: { usage: null, plan: null, ledger: [] } };
        const [{ balances, account, plan }, entries] = await Promise.all([
          readSnapshot(store, accountId),
          readLedger(store, accountId, ledgerEntries, open),
        ]);
        const { api_key: _, ...shown } = usage(balances, account, plan, null, store.clock.now());
        const ledger = entries.map((entry) => ({ ...entry, at: writeTime(entry.at) }));
        return {
          status: 200,
          body: { usage: shown, plan, invoice: account.invoice, suspended: account.suspended, ledger },
        };
      },
    },
  ];
}
