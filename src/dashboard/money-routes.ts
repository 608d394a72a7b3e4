import { fewAtATime } from '../api/account-turns.ts';
import { refuse } from '../base/errors.ts';
import { monthOf } from '../model/billing-period.ts';
import { usage } from '../model/money.ts';
import { type EndedPurchase, invoiceNumber, spentIn, writePrice } from '../model/purchase.ts';
import { writeTime } from '../model/timestamp.ts';
import { setAccount } from '../store/accounts/set-account.ts';
import type { ReadArchivedPart } from '../store/log/archived-parts.ts';
import { listPurchases, readPurchase } from '../store/money/read-purchases.ts';
import type { RecordStore } from '../store/script.ts';
import { changeRoute, type DashboardCall, type DashboardRoute, readRoute } from './dashboard-app.ts';
import { readBoolean, requireRead } from './given-values.ts';
import { readMoney } from './read-money.ts';

const ledgerEntries = 100;
const writeOne = fewAtATime(1, 'An invoice of this account is being written: wait for it');

/** Balances of the account, and the entries of its ledger; `mails` is false where there is no mail server. */
export function moneyRoutes(store: RecordStore, open: ReadArchivedPart, mails: boolean): DashboardRoute[] {
  return [
    readRoute('/api/billing', async ({ accountId }) => {
      if (accountId === '') return { status: 200, body: { usage: null, plan: null, ledger: [], purchases: [] } };
      const [{ balances, account, plan, entries }, bought] = await Promise.all([
        readMoney(store, accountId, ledgerEntries, open),
        listPurchases(store, accountId),
      ]);
      const purchases = bought.map(purchaseJson);
      const { api_key: _, ...shown } = usage(balances, account, plan, null, store.clock.now());
      const ledger = entries.map((entry) => ({ ...entry, at: writeTime(entry.at) }));
      return {
        status: 200,
        body: {
          usage: shown,
          plan,
          invoice: account.invoice,
          suspended: account.suspended,
          alerts: account.alerts,
          mails,
          spent: spentIn(bought, monthOf(store.clock.now()).start),
          ledger,
          purchases,
        },
      };
    }),
    readRoute('/api/purchases/:id/invoice.pdf', sendInvoice),
    changeRoute('PUT', '/api/alerts', 'money', async ({ store: noted, accountId, given }) => {
      const enabled = requireRead(readBoolean(given.enabled, 'enabled'));
      const { alerts } = await setAccount(noted, accountId, { alerts: enabled });
      return { status: 200, body: { enabled: alerts } };
    }),
  ];
}

async function sendInvoice({ req, res, store, accountId }: DashboardCall): Promise<null> {
  const purchase = accountId === '' ? null : await readPurchase(store, accountId, String(req.params.id));
  if (purchase?.invoice === undefined) throw refuse('not_found', 'There is no such invoice');
  const { writeInvoicePdf } = await import('../billing/invoice-pdf.ts');
  const content = await writeOne(accountId, () => writeInvoicePdf(purchase));
  const name = `${invoiceNumber(purchase.invoice)}.pdf`;
  res.set({ 'content-type': 'application/pdf', 'content-disposition': `attachment; filename="${name}"` });
  res.end(content);
  return null;
}

/** A purchase as the account's people see it: nothing of the provider's ids. */
function purchaseJson(bought: EndedPurchase) {
  const { id, kind, pack_title: pack, pack_total: credits, state, invoice, reason = null } = bought;
  const price = writePrice(bought.price_cents, bought.currency);
  const number = invoice === undefined ? null : invoiceNumber(invoice);
  return { id, kind, pack, credits, price, state, at: writeTime(bought.ended_at), invoice: number, reason };
}
