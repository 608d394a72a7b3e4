import { type EndedPurchase, invoiceNumber, writePrice } from '../model/purchase.ts';
import { writeTime } from '../model/timestamp.ts';

/** The rows of an invoice, as the mail and the page show them; what the operator has not set is left out. */
export function invoiceRows(purchase: EndedPurchase): (readonly [name: string, value: string])[] {
  const { invoice = 0, ended_at, seller, buyer = '', pack_title, pack_total, price_cents, currency } = purchase;
  const total = writePrice(price_cents, currency);
  const rows = [
    ['Invoice', invoiceNumber(invoice)],
    ['Date', writeTime(ended_at).slice(0, 10)],
    ['Seller', [seller?.name, seller?.address].filter(Boolean).join('\n')],
    ['Buyer', buyer],
    ['Item', `${pack_title} (${pack_total} credits)`],
    ['Total', total],
    ['Tax', seller?.tax ?? ''],
    ['Paid', `${total}, payment ${purchase.payment}`],
  ] as const;
  return rows.filter(([, value]) => value !== '');
}
