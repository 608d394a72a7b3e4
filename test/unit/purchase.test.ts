import { expect } from 'chai';
import { type EndedPurchase, invoiceNumber, priceProblem, spentIn, writePrice } from '../../src/model/purchase.ts';

describe('writePrice', () => {
  const rows: [cents: number, currency: string, text: string][] = [
    [990, 'eur', 'EUR 9.90'],
    [5, 'usd', 'USD 0.05'],
    [990, 'jpy', 'JPY 990'],
    [1234567, 'kwd', 'KWD 1234.567'],
    // Stripe counts cents of these, although nobody pays with them any more.
    [499000, 'huf', 'HUF 4990.00'],
    [9900000, 'idr', 'IDR 99000.00'],
    [50000, 'isk', 'ISK 500.00'],
    [500000, 'ugx', 'UGX 5000.00'],
  ];
  for (const [cents, currency, text] of rows)
    it(`writes ${text}`, () => expect(writePrice(cents, currency)).to.equal(text));

  it('has as many decimals as the pages of the dashboard show, for every currency', async () => {
    const file = '../../src/dashboard/pages/currency.js';
    const { decimalsOf } = (await import(file)) as { decimalsOf: (currency: string) => number };
    for (const currency of Intl.supportedValuesOf('currency')) {
      const [, decimals = ''] = writePrice(1, currency).split('.');
      expect([currency, decimalsOf(currency.toLowerCase())]).to.deep.equal([currency, decimals.length]);
    }
  });
});

describe('priceProblem', () => {
  const rows: [cents: number, currency: string, step: number | null][] = [
    [1, 'eur', null],
    [1, 'jpy', null],
    [1230, 'kwd', null],
    [1234, 'kwd', 10],
    [5, 'tnd', 10],
    [500, 'isk', null],
    [550, 'isk', 100],
    [10, 'ugx', 100],
    [1, 'huf', null],
  ];
  for (const [cents, currency, step] of rows) {
    it(`${step === null ? 'takes' : 'refuses'} ${cents} ${currency}`, () =>
      expect(/multiple of (\d+)/.exec(priceProblem(cents, currency) ?? '')?.[1]).to.equal(step?.toString()));
  }
});

describe('invoiceNumber', () => {
  it('has six digits or more', () => {
    expect([invoiceNumber(1), invoiceNumber(1_234_567)]).to.eql(['INV-000001', 'INV-1234567']);
  });
});

const bought = (kind: 'topup' | 'offer', state: EndedPurchase['state'], cents: number, at: number, currency = 'eur') =>
  ({ kind, state, price_cents: cents, ended_at: at, currency }) as EndedPurchase;

describe('what was paid since a moment', () => {
  it('is summed by currency, without what was declined, taken back or paid before', () => {
    const purchases = [
      ...[bought('topup', 'paid', 500, 10), bought('offer', 'paid', 900, 20), bought('topup', 'paid', 500, 9)],
      ...[bought('topup', 'declined', 500, 20), bought('offer', 'refunded', 500, 20)],
      ...[bought('offer', 'paid', 700, 11, 'usd')],
    ];
    expect(spentIn(purchases, 10)).to.deep.equal([
      { currency: 'eur', cents: 1400, topup_cents: 500 },
      { currency: 'usd', cents: 700, topup_cents: 0 },
    ]);
    expect(spentIn([], 0)).to.deep.equal([]);
  });
});
