import { expect } from 'chai';
import { type EndedPurchase, spentIn } from '../../src/model/purchase.ts';

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
