import { expect } from 'chai';
import fc from 'fast-check';
import { type AccountBalances, type Pack, remaining, subscriptionLeft, usage } from '../../src/model/money.ts';
import { anyBalances, aPack, someBalances } from '../support/balances.ts';
import { balanceToDraw, draw } from '../support/reference-models.ts';

const earlier = aPack('b', { purchased_at: 1 });
const later = aPack('a', { purchased_at: 2 });

describe('subscriptionLeft', () => {
  const rows: [quota: number, used: number, left: number][] = [
    [3, 0, 3],
    [3, 2, 1],
    [3, 3, 0],
    [1, 3, 0],
    [0, 0, 0],
  ];
  for (const [quota, used, left] of rows) {
    it(`of ${quota} with ${used} used is ${left}`, () => expect(subscriptionLeft({ quota, used })).to.equal(left));
  }
});

describe('the packs that an account is shown', () => {
  const shown = (packs: readonly Pack[]) => {
    const { packs: listed } = usage(someBalances({ packs }), { name: 'Acme', slug: 'acme' }, null, null, 0);
    return listed?.items.map(({ id }) => id);
  };

  it('are in the order of purchase, then of their ids, and the list stays as it was', () => {
    const packs = [aPack('c', { purchased_at: 5 }), aPack('d', { purchased_at: 1 }), aPack('b', { purchased_at: 5 })];
    expect(shown(packs)).to.eql(['d', 'b', 'c']);
    expect(packs.map((pack) => pack.id)).to.eql(['c', 'd', 'b']);
  });

  for (const ids of ['1Ba', '1aB', 'B1a', 'Ba1', 'a1B', 'aB1']) {
    it(`compare by the code of their ids, as the record does, when it has them as ${ids}`, () =>
      expect(shown([...ids].map((id) => aPack(id)))).to.eql(['1', 'B', 'a']));
  }
});

describe('draw', () => {
  const rows: [what: string, change: Partial<AccountBalances>, from: object, after: Partial<AccountBalances>][] = [
    [
      'from the subscription first',
      { quota: 1, packs: [earlier], credits_given: 1 },
      { balance: 'subscription' },
      { used: 1 },
    ],
    [
      'from the earlier pack when the quota is used up',
      { quota: 1, used: 1, packs: [later, earlier], credits_given: 1 },
      { balance: 'packs', pack: 'b' },
      { packs: [later, { ...earlier, used: 1 }] },
    ],
    [
      'from a pack when more was used than a lowered quota',
      { quota: 1, used: 3, packs: [later] },
      { balance: 'packs', pack: 'a' },
      { packs: [{ ...later, used: 1 }] },
    ],
    [
      'from the next pack when the earlier one is exhausted',
      { packs: [{ ...earlier, used: 5 }, later], credits_given: 1 },
      { balance: 'packs', pack: 'a' },
      {
        packs: [
          { ...earlier, used: 5 },
          { ...later, used: 1 },
        ],
      },
    ],
    [
      'from the pack with the lower id of two purchased at the same time',
      { packs: [aPack('y'), aPack('x')] },
      { balance: 'packs', pack: 'x' },
      { packs: [aPack('y'), aPack('x', { used: 1 })] },
    ],
    [
      'from the credits last',
      { quota: 1, used: 1, packs: [{ ...earlier, used: 5 }], credits_given: 4, credits_consumed: 3 },
      { balance: 'credits' },
      { credits_consumed: 4 },
    ],
    [
      'nothing when all is used up',
      { quota: 2, used: 2, credits_given: 1, credits_consumed: 1 },
      { balance: 'overdraft' },
      {},
    ],
    ['nothing from empty balances', {}, { balance: 'overdraft' }, {}],
  ];
  for (const [what, change, from, after] of rows) {
    it(`a charge takes ${what}`, () => {
      const balances = someBalances({ held: 2, ...change });
      expect(balanceToDraw(balances)).to.eql(from);
      expect(draw(balances)).to.eql({ ...balances, ...after });
    });
  }

  it('takes one credit until none remains, then overdraws and changes nothing', () => {
    fc.assert(
      fc.property(anyBalances(), (start) => {
        let balances = start;
        for (let left = remaining(start); left > 0; left -= 1) {
          expect(remaining(balances)).to.equal(left);
          balances = draw(balances);
        }
        expect([remaining(balances), balanceToDraw(balances), draw(balances)]).to.eql([
          0,
          { balance: 'overdraft' },
          balances,
        ]);
      }),
    );
  });
});
