import { expect } from 'chai';
import fc from 'fast-check';
import { type AccountBalances, packItem, reducedUsage, remaining, usage } from '../../src/model/money.ts';
import { anyBalances, aPack, someBalances } from '../support/balances.ts';
import { draw } from '../support/reference-models.ts';

const now = Date.UTC(2026, 2, 10, 12);
const account = { name: 'Acme', slug: 'acme' };
const plan = { name: 'pro', per_minute: 900, per_second: 30 };
const key = {
  alias: 'main',
  active: true,
  category: 'production',
  expires: Date.UTC(2033, 0, 2, 23, 59, 59, 999),
  quotas: { total: 100, monthly: null, weekly: 6, daily: 5 },
};
const earlier = aPack('b', { title: 'Earlier', purchased_at: Date.UTC(2026, 1, 1) });
const later = aPack('a', { title: 'Later', purchased_at: Date.UTC(2026, 1, 2) });

describe('usage', () => {
  it('is the whole snapshot of an account with everything', () => {
    const packs = [
      later,
      { ...earlier, used: 5 },
      aPack('c', { title: 'Last', purchased_at: Date.UTC(2026, 1, 3), total: 3 }),
    ];
    const period = { period_start: Date.UTC(2026, 1, 28, 8), period_end: Date.UTC(2026, 2, 31, 8) };
    const balances = someBalances({
      quota: 10,
      used: 4,
      ...period,
      packs,
      credits_given: 7,
      credits_consumed: 2,
      held: 3,
    });
    const first = {
      ...{ id: 'b', title: 'Earlier', purchased_at: '2026-02-01T00:00:00.000Z' },
      ...{ total: 5, used: 5, remaining: 0, percent_used: 100, exhausted: true },
    };
    const second = {
      ...{ id: 'a', title: 'Later', purchased_at: '2026-02-02T00:00:00.000Z' },
      ...{ total: 5, used: 0, remaining: 5, percent_used: 0, exhausted: false },
    };
    const third = {
      ...{ id: 'c', title: 'Last', purchased_at: '2026-02-03T00:00:00.000Z' },
      ...{ total: 3, used: 0, remaining: 3, percent_used: 0, exhausted: false },
    };
    expect(usage(balances, account, plan, key, now)).to.eql({
      remaining: 6 + 8 + 5,
      total_used: 4 + 5 + 2,
      held: 3,
      renewal_date: '2026-03-31T08:00:00.000Z',
      period: { start: '2026-02-28T08:00:00.000Z', end: '2026-03-31T08:00:00.000Z' },
      subscription: { used: 9, total: 23, remaining: 14, percent_used: 39.13 },
      packs: {
        ...{
          count: 3,
          exhausted_count: 1,
          all_exhausted: false,
          total: 13,
          used: 5,
          remaining: 8,
          percent_used: 38.46,
        },
        ...{ current_index: 1, current: second, items: [first, second, third] },
      },
      credits: { given: 7, consumed: 2, remaining: 5, percent_used: 28.57 },
      rate_limit: { per_minute: 900, per_second: 30 },
      account,
      api_key: { ...key, expires: '2033-01-02T23:59:59.999Z' },
    });
  });

  it('is the whole snapshot of an account with nothing, asked for without a key', () => {
    expect(usage(someBalances(), account, null, null, now)).to.eql({
      remaining: 0,
      total_used: 0,
      held: 0,
      renewal_date: null,
      period: { start: '2026-03-01T00:00:00.000Z', end: '2026-04-01T00:00:00.000Z' },
      subscription: { used: 0, total: 0, remaining: 0, percent_used: 0 },
      packs: null,
      credits: { given: 0, consumed: 0, remaining: 0, percent_used: 0 },
      rate_limit: { per_minute: null, per_second: null },
      account,
      api_key: null,
    });
  });

  it('shows every number of the draw order: subscription, packs by purchase, credits', () => {
    const one = { total: 1 };
    let balances = someBalances({
      quota: 1,
      packs: [
        { ...later, ...one },
        { ...earlier, ...one },
      ],
      credits_given: 1,
    });
    const rows = [
      [4, 0, [0, 3, 3, 0], [2, 0, false, 2, 0, 2, 0, 0, 'Earlier'], [1, 0, 1, 0]],
      [3, 1, [1, 3, 2, 33.33], [2, 0, false, 2, 0, 2, 0, 0, 'Earlier'], [1, 0, 1, 0]],
      [2, 2, [2, 3, 1, 66.67], [2, 1, false, 2, 1, 1, 50, 1, 'Later'], [1, 0, 1, 0]],
      [1, 3, [3, 3, 0, 100], [2, 2, true, 2, 2, 0, 100, 2, undefined], [1, 0, 1, 0]],
      [0, 4, [3, 3, 0, 100], [2, 2, true, 2, 2, 0, 100, 2, undefined], [1, 1, 0, 100]],
    ];
    for (const row of rows) {
      expect(numbersOf(balances)).to.eql(row);
      balances = draw(balances);
    }
  });

  const percents: [used: number, total: number, percent: number][] = [
    [0, 0, 0],
    [3, 0, 0],
    [1, 3, 33.33],
    [2, 3, 66.67],
    [1, 8, 12.5],
    [1, 1_000_000, 0],
    [7, 7, 100],
    [3, 1, 100],
    [999_999_999_999, 1_000_000_000_000, 100],
  ];
  for (const [used, total, percent] of percents) {
    it(`shows ${used} of ${total} as ${percent} percent`, () => {
      expect(usage(someBalances({ quota: total, used }), account, plan, null, now).subscription.percent_used).to.equal(
        percent,
      );
    });
  }

  it('shows more used than a lowered quota as it is, with nothing left and 100 percent', () => {
    const { subscription, remaining: left } = usage(someBalances({ quota: 1, used: 3 }), account, plan, null, now);
    expect([left, subscription]).to.eql([0, { used: 3, total: 1, remaining: 0, percent_used: 100 }]);
  });

  it('shows packs whole although more was used than a lowered quota', () => {
    const { subscription } = usage(someBalances({ quota: 1, used: 3, packs: [later] }), account, plan, null, now);
    expect(subscription).to.eql({ used: 3, total: 6, remaining: 5, percent_used: 50 });
  });

  it('sums packs alone without a plan, in the calendar month', () => {
    const seen = usage(someBalances({ packs: [{ ...later, used: 1 }] }), account, null, null, now);
    expect(seen.subscription).to.eql({ used: 1, total: 5, remaining: 4, percent_used: 20 });
    expect([seen.renewal_date, seen.period.start]).to.eql([null, '2026-03-01T00:00:00.000Z']);
  });

  it('shows no renewal without a plan, even while the balances still have a period', () => {
    const balances = someBalances({ period_start: now - 1, period_end: now + 1 });
    const seen = usage(balances, account, null, null, now);
    expect([seen.renewal_date, seen.period.end]).to.eql([null, '2026-04-01T00:00:00.000Z']);
  });

  it('shows null for a key that never expires and for limits that a plan does not have', () => {
    const seen = usage(someBalances(), account, { per_minute: null, per_second: 5 }, { ...key, expires: null }, now);
    expect([seen.api_key?.expires, seen.rate_limit]).to.eql([null, { per_minute: null, per_second: 5 }]);
  });

  it('copies no other field of the key or the account', () => {
    const secret = { hash: 'secret' };
    expect(
      JSON.stringify(usage(someBalances(), { ...account, ...secret }, plan, { ...key, ...secret }, now)),
    ).to.not.contain('secret');
  });

  it('adds up for any balances', () => {
    fc.assert(
      fc.property(anyBalances(), (balances) => {
        const seen = usage(balances, account, plan, key, now);
        const { packs, subscription, credits } = seen;
        expect(seen.remaining)
          .to.equal(remaining(balances))
          .and.equal(subscription.remaining + credits.remaining);
        expect(seen.total_used).to.equal(subscription.used + credits.consumed);
        expect(credits.given).to.equal(credits.consumed + credits.remaining);
        if (packs === null) return;
        expect(packs.current).to.equal(packs.items[packs.current_index] ?? null);
        expect(packs.current_index).to.equal(packs.exhausted_count);
        expect(packs.total).to.equal(packs.used + packs.remaining);
      }),
    );
  });
});

describe('packItem', () => {
  it('shows a pack with what remains and its percentage', () => {
    expect(packItem(aPack('p', { title: 'Starter', purchased_at: now, total: 3, used: 1 }))).to.eql({
      ...{ id: 'p', title: 'Starter', purchased_at: '2026-03-10T12:00:00.000Z' },
      ...{ total: 3, used: 1, remaining: 2, percent_used: 33.33, exhausted: false },
    });
  });
});

describe('reducedUsage', () => {
  const balances = someBalances({ quota: 40, credits_given: 2, held: 1 });
  it('shows the plan, and the remaining credits as text', () =>
    expect(reducedUsage(balances, plan)).to.eql({ plan: 'pro', remaining: '42' }));
  it('shows no plan as none', () =>
    expect(reducedUsage(someBalances(), null)).to.eql({ plan: 'none', remaining: '0' }));
});

function numbersOf(balances: AccountBalances): unknown[] {
  const {
    remaining: left,
    total_used,
    subscription: s,
    packs: p,
    credits: c,
  } = usage(balances, account, plan, key, now);
  return [
    ...[left, total_used, [s.used, s.total, s.remaining, s.percent_used]],
    p && [
      p.count,
      p.exhausted_count,
      p.all_exhausted,
      p.total,
      p.used,
      p.remaining,
      p.percent_used,
      p.current_index,
      p.current?.title,
    ],
    [c.given, c.consumed, c.remaining, c.percent_used],
  ];
}
