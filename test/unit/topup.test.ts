import { expect } from 'chai';
import fc from 'fast-check';
import {
  enablingProblem,
  nextPossibleAt,
  ownerProblem,
  readTopupChoice,
  type Topup,
  type TopupChoice,
  topupOf,
} from '../../src/model/topup.ts';
import { type AfterCharge, shouldBuy } from '../support/reference-models.ts';

const now = Date.UTC(2026, 2, 10);
const hour = 3_600_000;
/** An account whose record has no setting. */
const noTopup = topupOf({});
const chosen: Topup = {
  ...noTopup,
  ...{
    enabled: true,
    threshold_percent: 30,
    pack_title: 'Auto pack',
    pack_total: 10,
    price_cents: 990,
    currency: 'eur',
  },
  ...{ customer: 'cus_x', payment_method: 'pm_x' },
};
const below: AfterCharge = { remaining: 5, quota: 10, spentThisMonthCents: 0, purchaseUnderWay: false };

describe('shouldBuy', () => {
  const rows: [what: string, topup: Partial<Topup>, after: Partial<AfterCharge>, decision: string][] = [
    ['buys below the threshold', {}, {}, 'buy'],
    ['buys nothing at exactly the threshold (6 of 20 at 30 %)', {}, { remaining: 6 }, 'no'],
    ['buys when nothing is left', {}, { remaining: 0 }, 'buy'],
    ['counts the pack into the threshold of a plan without a quota', {}, { quota: 0, remaining: 2 }, 'buy'],
    ['buys nothing above the threshold of a plan without a quota', {}, { quota: 0, remaining: 3 }, 'no'],
    [
      'buys just below a threshold that is no whole number (10 % of 15)',
      { threshold_percent: 10, pack_total: 5 },
      { remaining: 1 },
      'buy',
    ],
    [
      'buys nothing just above a threshold that is no whole number (10 % of 19)',
      { threshold_percent: 10, pack_total: 9 },
      { remaining: 2 },
      'no',
    ],
    ['topup-disable: buys nothing while disabled', { enabled: false }, {}, 'no'],
    ['buys nothing while a purchase is under way', {}, { purchaseUnderWay: true }, 'no'],
    [
      'limit-topup-cooldown: buys nothing within 72 hours of the last purchase',
      { last_purchase_at: now - 72 * hour + 1 },
      {},
      'no',
    ],
    ['buys 72 hours after the last purchase', { last_purchase_at: now - 72 * hour }, {}, 'buy'],
    ['buys up to the monthly cap', { monthly_cap_cents: 2000 }, { spentThisMonthCents: 1010 }, 'buy'],
    ['D82: buys nothing above the monthly cap', { monthly_cap_cents: 2000 }, { spentThisMonthCents: 1011 }, 'capped'],
    ['buys nothing under a cap below the price', { monthly_cap_cents: 989 }, {}, 'capped'],
    ['is not capped without a cap', {}, { spentThisMonthCents: 1e12 }, 'buy'],
    ['is not capped while nothing is due', { monthly_cap_cents: 1 }, { remaining: 6 }, 'no'],
    ['is not capped within 72 hours', { monthly_cap_cents: 1, last_purchase_at: now }, {}, 'no'],
    ['is not capped while a purchase is under way', { monthly_cap_cents: 1 }, { purchaseUnderWay: true }, 'no'],
    ['buys nothing without a payment method', { payment_method: null }, {}, 'no'],
    ['buys nothing without a price', { price_cents: null }, {}, 'no'],
    ['buys nothing without a pack', { pack_total: null }, {}, 'no'],
  ];
  for (const [what, topup, after, decision] of rows) {
    it(what, () => expect(shouldBuy({ ...chosen, ...topup }, { ...below, ...after }, now)).to.equal(decision));
  }

  it('topup-buy limit-topup-threshold D49: buys exactly when what remains is less than the threshold', () => {
    const amount = fc.nat(1000);
    fc.assert(
      fc.property(amount, amount, amount, fc.integer({ min: 10, max: 30 }), (left, quota, pack, percent) => {
        const topup = { ...chosen, threshold_percent: percent, pack_total: pack };
        const isBelow = BigInt(left) * 100n < BigInt(percent) * BigInt(quota + pack);
        expect(shouldBuy(topup, { ...below, remaining: left, quota }, now)).to.equal(isBelow ? 'buy' : 'no');
      }),
    );
  });
});

describe('topupOf an account without a setting', () => {
  it('is disabled, at the lowest threshold, and cannot be enabled as it is', () => {
    expect(noTopup).to.eql({
      ...{ enabled: false, threshold_percent: 10, pack_title: null, pack_total: null, price_cents: null },
      ...{ currency: null, customer: null, payment_method: null, monthly_cap_cents: null },
      ...{ last_purchase_at: null, cap_mailed_at: null },
    });
    expect(enablingProblem(noTopup, { paid: true }, true)).to.equal('topup_incomplete');
  });
});

describe('topupOf the fields of a hash', () => {
  const fields = {
    ...{ enabled: '1', threshold_percent: '30', pack_title: 'Auto pack', pack_total: '10', price_cents: '990' },
    ...{ currency: 'eur', customer: 'cus_x', payment_method: 'pm_x', monthly_cap_cents: '2000' },
    ...{ last_purchase_at: '1773100800000', cap_mailed_at: '1773100800001' },
  };

  it('has a value of each', () => {
    expect(topupOf(fields)).to.eql({
      ...{ enabled: true, threshold_percent: 30, pack_title: 'Auto pack', pack_total: 10, price_cents: 990 },
      ...{ currency: 'eur', customer: 'cus_x', payment_method: 'pm_x', monthly_cap_cents: 2000 },
      ...{ last_purchase_at: 1_773_100_800_000, cap_mailed_at: 1_773_100_800_001 },
    });
  });

  for (const enabled of ['0', ''])
    it(`is disabled with ${JSON.stringify(enabled)}`, () =>
      expect(topupOf({ ...fields, enabled }).enabled).to.equal(false));
});

describe('nextPossibleAt', () => {
  it('is 72 hours after the last purchase', () =>
    expect(nextPossibleAt({ last_purchase_at: now })).to.equal(now + 72 * hour));
  it('is null without a purchase', () => expect(nextPossibleAt(noTopup)).to.equal(null));
});

describe('enablingProblem', () => {
  const rows: [
    what: string,
    topup: Partial<Topup>,
    plan: { paid: boolean } | null,
    provider: boolean,
    problem: string | null,
  ][] = [
    ['a complete setting on a paid plan', {}, { paid: true }, true, null],
    ['no plan', {}, null, true, 'paid_plan_only'],
    ['topup-enable limit-topup-plan: a free plan', {}, { paid: false }, true, 'paid_plan_only'],
    ['no title', { pack_title: null }, { paid: true }, true, 'topup_incomplete'],
    ['no size of the pack', { pack_total: null }, { paid: true }, true, 'topup_incomplete'],
    ['no price', { price_cents: null }, { paid: true }, true, 'topup_incomplete'],
    ['no currency', { currency: null }, { paid: true }, true, 'topup_incomplete'],
    ['no customer', { customer: null }, { paid: true }, true, 'topup_incomplete'],
    ['D82: no payment method', { payment_method: null }, { paid: true }, true, 'topup_incomplete'],
    ['D57: no provider', {}, { paid: true }, false, 'no_provider'],
    [
      'topup-enable limit-topup-plan: a free plan before an incomplete setting',
      noTopup,
      { paid: false },
      false,
      'paid_plan_only',
    ],
    ['an incomplete setting before a missing provider', noTopup, { paid: true }, false, 'topup_incomplete'],
  ];
  for (const [what, topup, plan, provider, problem] of rows) {
    it(`answers ${problem} for ${what}`, () =>
      expect(enablingProblem({ ...chosen, ...topup }, plan, provider)).to.equal(problem));
  }
});

describe('ownerProblem', () => {
  const offer = { name: 'small', title: 'Small', credits: 100, price_cents: 990, currency: 'eur' };
  const larger = { ...offer, name: 'large', title: 'Large', credits: 1000 };
  const offered = { pack_title: 'Small', pack_total: 100, price_cents: 990, currency: 'eur' };
  const rows: [what: string, change: Partial<TopupChoice>, allowed: boolean][] = [
    ['switches and limits', { enabled: false, threshold_percent: 20, monthly_cap_cents: 5000 }, true],
    ['an offer', offered, true],
    ['the other offer', { ...offered, pack_title: 'Large', pack_total: 1000 }, true],
    ['an offer under another title', { ...offered, pack_title: 'Tiny' }, false],
    ['an offer under the title of the other one', { ...offered, pack_title: 'Large' }, false],
    ['an offer at another price', { ...offered, price_cents: 1 }, false],
    ['an offer of more credits', { ...offered, pack_total: 1000 }, false],
    ['an offer in another currency', { ...offered, currency: 'jpy' }, false],
    ['the customer of others', { customer: 'cus_y' }, false],
    ['the payment method of others', { payment_method: 'pm_y' }, false],
  ];
  for (const [what, change, allowed] of rows) {
    it(`${allowed ? 'allows' : 'names'} ${what}`, () =>
      expect(ownerProblem(chosen, { ...chosen, ...change }, [offer, larger]) === null).to.equal(allowed));
  }
});

describe('readTopupChoice', () => {
  it('reads the words of a command', () => {
    const words = {
      ...{
        enabled: 'yes',
        threshold_percent: '20',
        pack_title: 'P',
        pack_total: '5',
        price_cents: '100',
        currency: 'EUR',
      },
      ...{ customer: 'cus_x', payment_method: 'pm_x', monthly_cap_cents: 'none' },
    };
    const wanted = {
      ...{ enabled: true, threshold_percent: 20, pack_title: 'P', pack_total: 5, price_cents: 100, currency: 'eur' },
      ...{ customer: 'cus_x', payment_method: 'pm_x', monthly_cap_cents: null },
    };
    expect(readTopupChoice(words)).to.eql({ value: wanted });
  });

  it('reads back what it read', () => {
    const { last_purchase_at, cap_mailed_at, ...choice } = chosen;
    expect(readTopupChoice({ ...choice })).to.eql({ value: choice });
  });

  it('leaves out what is undefined', () => {
    expect(readTopupChoice({ enabled: undefined, price_cents: 5 })).to.eql({ value: { price_cents: 5 } });
  });

  const allowed: [name: keyof TopupChoice, value: unknown, read: unknown][] = [
    ['threshold_percent', 10, 10],
    ['threshold_percent', 30, 30],
    ['pack_total', 1, 1],
    ['price_cents', 1, 1],
    ['customer', 'c', 'c'],
    ['payment_method', 'p'.repeat(255), 'p'.repeat(255)],
    ['monthly_cap_cents', 1, 1],
    ['pack_title', null, null],
    ['pack_total', null, null],
    ['price_cents', null, null],
    ['currency', null, null],
    ['customer', null, null],
    ['payment_method', null, null],
    ['monthly_cap_cents', null, null],
  ];
  for (const [name, value, read] of allowed) {
    it(`takes ${value} as ${name}`, () =>
      expect(readTopupChoice({ [name]: value })).to.eql({ value: { [name]: read } }));
  }

  const numbers = ['threshold_percent', 'pack_total', 'price_cents', 'monthly_cap_cents'];
  for (const name of ['enabled', ...numbers, 'currency', 'customer', 'payment_method']) {
    it(`limit-topup-threshold: names ${name} when it refuses it`, () =>
      expect(readTopupChoice({ [name]: '' }).problem).to.match(RegExp(`^${name} must be`)));
  }

  const refused: [name: string, values: unknown[]][] = [
    ['enabled', ['yes please', '', 1, null]],
    ['threshold_percent', [9, 31, '9', '31', 20.5, '20%', '', null]],
    ['pack_title', ['', 'a\nb', 5]],
    ['pack_total', [0, -1, 1.5, 'x', 1e12 + 1]],
    ['price_cents', [0, -1, 0.5, '9.90', true]],
    ['currency', ['', 'eu', 'euro', '€', 'e1r', 5, ['eur']]],
    ['customer', ['', 'cus x', 'cus/x', 'c'.repeat(256), 5]],
    ['payment_method', ['', 'pm x', 'pm\n', 5]],
    ['monthly_cap_cents', [0, -1, 'all', 1.5]],
    ['last_purchase_at', [0]],
    ['cap_mailed_at', [0]],
    ['constructor', ['x']],
    ['price', [5]],
  ];
  for (const [name, values] of refused) {
    for (const value of values) {
      const text = String(JSON.stringify(value)).slice(0, 30);
      it(`refuses ${text} as ${name} with a sentence`, () =>
        expect(readTopupChoice({ price_cents: 5, [name]: value }).problem).to.match(/^\S.{15,150}[^.\s]$/));
    }
  }
});
