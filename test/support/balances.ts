import fc from 'fast-check';
import type { AccountBalances, Pack } from '../../src/model/money.ts';
import { draw } from './reference-models.ts';

/** Books without anything, changed as told. */
export function someBalances(change: Partial<AccountBalances> = {}): AccountBalances {
  const money = { quota: 0, used: 0, credits_given: 0, credits_consumed: 0, held: 0 };
  return { ...money, period_start: null, period_end: null, packs: [], ...change };
}

/** A pack of five credits, changed as told. */
export function aPack(id: string, change: Partial<Pack> = {}): Pack {
  return { id, title: 'Pack', purchased_at: 0, total: 5, used: 0, ...change };
}

/** Books as draws in order leave them: no pack is begun before the one before it is exhausted. */
export function anyBalances(): fc.Arbitrary<AccountBalances> {
  const few = fc.nat(6);
  const packs = fc.array(fc.record({ purchased_at: fc.nat(3), total: fc.integer({ min: 1, max: 4 }) }), {
    maxLength: 4,
  });
  return fc.tuple(few, few, packs, few, few).map(([quota, used, bought, credits_given, drawn]) => {
    const begun = bought.map((pack, n) => aPack(`p${n}`, pack));
    let balances = someBalances({ quota, used, packs: begun, credits_given });
    for (let n = 0; n < drawn; n += 1) balances = draw(balances);
    return balances;
  });
}
