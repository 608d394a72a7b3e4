/** Purchase of a pack: `topup` by the automatic top-up, `offer` by an owner at the provider's checkout. */
export interface Purchase {
  /** Also the provider's idempotency key and the id of the pack. */
  readonly id: string;
  readonly account: string;
  readonly kind: 'topup' | 'offer';
  readonly pack_title: string;
  readonly pack_total: number;
  readonly price_cents: number;
  readonly currency: string;
  readonly customer: string;
  readonly payment_method: string;
}

/** A pack that owners may buy, in the operator's catalogue. */
export interface Offer {
  readonly name: string;
  readonly title: string;
  readonly credits: number;
  readonly price_cents: number;
  readonly currency: string;
}

/** Seller as the invoice names it; '' for what the operator has not set. */
export interface Seller {
  readonly name: string;
  readonly address: string;
  readonly tax: string;
}

/** A purchase that ended. Times are milliseconds. */
export interface EndedPurchase extends Purchase {
  readonly state: 'paid' | 'declined' | 'refunded' | 'disputed';
  /** The provider's id of the payment. */
  readonly payment: string;
  readonly ended_at: number;
  /** Place in the sequence of all invoices; only of a purchase that was paid. */
  readonly invoice?: number;
  readonly seller?: Seller;
  /** Name of the account when it paid. */
  readonly buyer?: string;
  /** Sentence of the provider about a decline. */
  readonly reason?: string;
}

export type PurchaseEnd =
  | { readonly verdict: 'paid'; readonly payment: string; readonly seller: Seller }
  | { readonly verdict: 'declined'; readonly payment: string; readonly reason: string };

export function invoiceNumber(ordinal: number): string {
  return `INV-${String(ordinal).padStart(6, '0')}`;
}

/**
 * Currencies whose amounts the provider does not count in hundredths. `Intl` does not know them: it shows no decimals of 14 others, such
 * as HUF and IDR, of which the provider counts hundredths all the same. The pages of the dashboard have the same list.
 */
const unusualDecimals: Readonly<Record<number, string>> = {
  0: 'BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF',
  3: 'BHD JOD KWD OMR TND',
};

/** Currencies of whose smallest units the provider takes only so many at once. */
const steps: Readonly<Record<number, string>> = { 10: 'BHD JOD KWD OMR TND', 100: 'ISK UGX' };

function numberOf(lists: Readonly<Record<number, string>>, code: string, otherwise: number): number {
  const [found] = Object.entries(lists).find(([, codes]) => codes.split(' ').includes(code)) ?? [];
  return Number(found ?? otherwise);
}

/** Returns an amount in the provider's smallest unit of its currency as people write it: 990 eur is EUR 9.90, 990 jpy is JPY 990. */
export function writePrice(cents: number, currency: string): string {
  const code = currency.toUpperCase();
  const decimals = numberOf(unusualDecimals, code, 2);
  return `${code} ${(cents / 10 ** decimals).toFixed(decimals)}`;
}

/** Returns why the provider would refuse a price whatever card pays it, or `null`. */
export function priceProblem(cents: number, currency: string): string | null {
  const code = currency.toUpperCase();
  const step = numberOf(steps, code, 1);
  return cents % step === 0 ? null : `A price in ${code} must be a multiple of ${step}: Stripe refuses all others`;
}

/** Money that an account paid since a moment, by currency. */
interface Spending {
  readonly currency: string;
  /** In all, and by the automatic top-up. */
  readonly cents: number;
  readonly topup_cents: number;
}

/** Returns what was paid and not taken back since a moment. */
export function spentIn(purchases: readonly EndedPurchase[], since: number): Spending[] {
  const counted = purchases.filter(({ state, ended_at }) => state === 'paid' && ended_at >= since);
  const sum = (paid: readonly EndedPurchase[]) => paid.reduce((cents, { price_cents }) => cents + price_cents, 0);
  return [...Map.groupBy(counted, ({ currency }) => currency)].map(([currency, paid]) => {
    return { currency, cents: sum(paid), topup_cents: sum(paid.filter(({ kind }) => kind === 'topup')) };
  });
}
