import { expect } from 'chai';
import fc from 'fast-check';
import { differences, type LedgerEntry, type Opening, replay } from '../../src/model/ledger.ts';
import { type AccountBalances, remaining } from '../../src/model/money.ts';
import { aPack, someBalances } from '../support/balances.ts';
import { type History, histories } from '../support/histories.ts';

const grant = anEntry('grant', 'credits', 4);
const packGrant = anEntry('grant', 'packs', 5, { pack: 'p' });
const charge = anEntry('charge', 'credits', 1, { job: 'j1' });
const overdraft = anEntry('overdraft', 'overdraft', 1, { job: 'j1' });

describe('replay', () => {
  it('D81: comes to the balances of every kind of entry', () => {
    const entries = [
      ...[anEntry('grant', 'subscription', 3), grant, packGrant],
      anEntry('charge', 'subscription', 1, { job: 'a' }),
      anEntry('lapse', 'subscription', 2),
      anEntry('charge', 'packs', 1, { job: 'b', pack: 'p' }),
      anEntry('lapse', 'packs', 3, { pack: 'p' }),
      anEntry('charge', 'credits', 1, { job: 'c' }),
      anEntry('overdraft', 'overdraft', 1, { job: 'd' }),
    ];
    expect(replay(entries)).to.eql({
      ...{ subscription: 0, credits_given: 4, credits_consumed: 1, packs: new Map([['p', { total: 2, used: 1 }]]) },
      ...{ granted: 12, charged: 3, lapsed: 5, overdrafts: 1, paid: 4, problems: [] },
    });
  });

  it('goes on from opening balances and leaves them as they were', () => {
    const opening = anOpening();
    const entries = [
      anEntry('charge', 'subscription', 1, { job: 'a' }),
      anEntry('charge', 'packs', 1, { job: 'b', pack: 'p' }),
      anEntry('charge', 'credits', 1, { job: 'c' }),
    ];
    const { subscription, credits_given, credits_consumed, paid, packs, problems } = replay(entries, opening);
    expect({ subscription, credits_given, credits_consumed, paid, packs, problems }).to.eql({
      ...{ subscription: 1, credits_given: 6, credits_consumed: 3, paid: 12, problems: [] },
      packs: new Map([['p', { total: 5, used: 5 }]]),
    });
    expect(opening).to.eql(anOpening());
  });

  const problems: [what: string, entries: LedgerEntry[], problem: string][] = [
    ['an unknown kind', [{ ...grant, kind: 'gift' as LedgerEntry['kind'] }], 'has the unknown kind gift'],
    [
      'a kind that every object has',
      [{ ...grant, kind: 'toString' as LedgerEntry['kind'] }],
      'has the unknown kind toString',
    ],
    ['a grant of overdraft', [{ ...grant, balance: 'overdraft' }], 'has the kind grant, but the balance overdraft'],
    ['a lapse of credits', [anEntry('lapse', 'credits', 1)], 'has the kind lapse, but the balance credits'],
    [
      'an overdraft of credits',
      [{ ...overdraft, balance: 'credits' }],
      'has the kind overdraft, but the balance credits',
    ],
    ['an amount of 0', [{ ...grant, amount: 0 }], 'has the amount 0, which is no positive whole number'],
    ['a negative amount', [{ ...grant, amount: -1 }], 'has the amount -1, which is no positive whole number'],
    ['half a credit', [{ ...grant, amount: 0.5 }], 'has the amount 0.5, which is no positive whole number'],
    [
      'an amount that is no number',
      [{ ...grant, amount: Number.NaN }],
      'has the amount NaN, which is no positive whole number',
    ],
    ['a charge of two', [{ ...charge, amount: 2 }], 'has the kind charge, but the amount 2: one call costs 1'],
    ['a charge for nothing', [{ ...charge, job: null }], 'has the kind charge, but names no job'],
    ['an overdraft for nothing', [{ ...overdraft, job: null }], 'has the kind overdraft, but names no job'],
    ['a grant for a job', [{ ...grant, job: 'j1' }], 'has the kind grant, but names a job'],
    ['packs without a pack', [{ ...packGrant, pack: null }], 'has the balance packs, but names no pack'],
    ['credits of a pack', [{ ...grant, pack: 'p' }], 'has the balance credits, but names a pack'],
    ['a second charge of a job', [grant, charge, charge], 'charges job j1 a second time'],
    ['an overdraft of a charged job', [grant, charge, overdraft], 'charges job j1 a second time'],
    ['a pack added twice', [packGrant, packGrant], 'adds pack p a second time'],
    ['a draw from no pack', [{ ...charge, balance: 'packs', pack: 'q' }], 'draws from pack q, which was never added'],
    ['credits below zero', [charge], 'takes the credits below zero'],
    ['the subscription below zero', [{ ...charge, balance: 'subscription' }], 'takes the subscription below zero'],
    ['a lapse of more than is left', [anEntry('lapse', 'subscription', 3)], 'takes the subscription below zero'],
    [
      'a pack below zero',
      [
        { ...packGrant, amount: 1 },
        ...['a', 'b'].map((job) => ({ ...charge, balance: 'packs' as const, pack: 'p', job })),
      ],
      'takes pack p below zero',
    ],
  ];
  for (const [what, entries, problem] of problems) {
    it(`names ${what}, once`, () => {
      const numbered = entries.map((entry, n) => ({ ...entry, entry: `e${n}` }));
      expect(replay(numbered).problems).to.eql([`Entry e${entries.length - 1} ${problem}`]);
    });
  }

  it('names a balance below zero though later entries fill it', () => {
    expect(replay([charge, grant]).problems).to.eql(['Entry 1-0 takes the credits below zero']);
  });

  it('names a balance below zero once, not at every entry after it', () => {
    expect(replay([charge, { ...charge, job: 'j2' }]).problems).to.have.length(1);
  });

  it('counts a second charge of a job that is too far from the first to be named', () => {
    const others = Array.from({ length: 25_000 }, (_, n) => ({ ...overdraft, job: `o${n}` }));
    expect(replay([overdraft, ...others, overdraft])).to.deep.include({ paid: 25_002, problems: [] });
  });

  it('moves nothing for an entry that is not well formed', () => {
    expect(replay([grant, { ...grant, amount: -4 }]).credits_given).to.equal(4);
    const { problems, paid } = replay([grant, { ...charge, amount: 2 }, charge]);
    expect([problems.length, paid], 'the charge after it is the first of its job').to.eql([1, 1]);
  });
});

describe('differences', () => {
  const entries = [anEntry('grant', 'subscription', 3), grant, packGrant, charge];
  const books = someBalances({ quota: 3, packs: [aPack('p')], credits_given: 4, credits_consumed: 1, held: 2 });

  it('are none when ledger, balances and holds agree', () => {
    expect(differences(replay(entries), books, { holds: 2, completed: 1 })).to.eql([]);
  });

  it('are none when more was used than a lowered quota and the ledger has nothing left', () => {
    expect(differences(replay([]), someBalances({ quota: 1, used: 3 }), { holds: 0, completed: 0 })).to.eql([]);
  });

  const rows: [what: string, change: Partial<AccountBalances>, sentences: string[]][] = [
    ['a quota', { quota: 4 }, ['What is left of the subscription is 3 in the ledger and 4 in the balances']],
    ['use of the quota', { used: 1 }, ['What is left of the subscription is 3 in the ledger and 2 in the balances']],
    ['credits given', { credits_given: 5 }, ['The sum of credits given is 4 in the ledger and 5 in the balances']],
    [
      'credits consumed',
      { credits_consumed: 2 },
      ['The sum of credits consumed is 1 in the ledger and 2 in the balances'],
    ],
    [
      'the total of a pack',
      { packs: [aPack('p', { total: 6 })] },
      ['The total of pack p is 5 in the ledger and 6 in the balances'],
    ],
    [
      'use of a pack',
      { packs: [aPack('p', { used: 1 })] },
      ['What is used of pack p is 0 in the ledger and 1 in the balances'],
    ],
    ['the sum of holds', { held: 1 }, ['What is held is 1 in the balances and 2 by the open holds']],
    [
      'a sum of credits that is no number',
      { credits_given: Number.NaN },
      ['The sum of credits given is 4 in the ledger and NaN in the balances'],
    ],
    [
      'a pack that the balances lack and',
      { packs: [] },
      [
        'The total of pack p is 5 in the ledger and not in the balances',
        'What is used of pack p is 0 in the ledger and not in the balances',
      ],
    ],
    [
      'a pack that the ledger lacks and',
      { packs: [aPack('p'), aPack('q')] },
      [
        'The total of pack q is not in the ledger and 5 in the balances',
        'What is used of pack q is not in the ledger and 0 in the balances',
      ],
    ],
  ];
  for (const [what, change, sentences] of rows) {
    it(`name ${what} that differs between ledger and balances`, () => {
      expect(differences(replay(entries), { ...books, ...change }, { holds: 2, completed: 1 })).to.eql(sentences);
    });
  }

  it('begin with the problems of the replay', () => {
    const found = differences(replay([...entries, charge]), books, { holds: 2, completed: 1 });
    expect(found).to.eql([
      'Entry 1-0 charges job j1 a second time',
      'The sum of credits consumed is 2 in the ledger and 1 in the balances',
      'The number of completed jobs and calls is 1, and 2 are charged in the ledger',
    ]);
  });

  it('name a completed job without a charge, though every balance is right', () => {
    expect(differences(replay(entries), books, { holds: 2, completed: 2 })).to.eql([
      'The number of completed jobs and calls is 2, and 1 are charged in the ledger',
    ]);
  });
});

describe('the ledger of any history', () => {
  it('replays to the balances', () => {
    fc.assert(
      fc.property(histories, ({ entries, balances, holds, completed }) => {
        expect(differences(replay(entries), balances, { holds, completed })).to.eql([]);
      }),
    );
  });

  it('has granted as much as remains, was charged and lapsed', () => {
    fc.assert(
      fc.property(histories, ({ entries, balances }) => {
        const { granted, charged, lapsed } = replay(entries);
        expect(granted).to.equal(remaining(balances) + charged + lapsed);
      }),
    );
  });

  it('replays to the same balances from an opening at any point', () => {
    fc.assert(
      fc.property(histories, fc.nat(), ({ entries }, point) => {
        const cut = point % (entries.length + 1);
        const { subscription, credits_given, credits_consumed, paid, packs, problems } = replay(entries);
        const late = replay(entries.slice(cut), replay(entries.slice(0, cut)));
        expect(late).to.deep.include({ subscription, credits_given, credits_consumed, paid, packs, problems });
      }),
    );
  });

  it('shows a difference when any one entry was dropped, doubled or altered', () => {
    fc.assert(
      fc.property(histories, fc.nat(), fc.nat(), (history, place, way) => {
        const tampered = tamper(history, place, way);
        fc.pre(tampered !== null);
        expect(differences(replay(tampered ?? []), history.balances, history)).to.not.eql([]);
      }),
      { numRuns: 500 },
    );
  });
});

/** One of the ways to falsify one entry; `null` where that leaves the ledger as it was. */
function tamper({ entries, balances }: History, place: number, way: number): LedgerEntry[] | null {
  const at = place % Math.max(1, entries.length);
  const entry = entries[at];
  if (!entry) return null;
  const others: Partial<LedgerEntry>[] = [
    ...[entry.amount + 1, entry.amount - 1, entry.amount + 0.5, -entry.amount].map((amount) => ({ amount })),
    ...(['grant', 'charge', 'lapse', 'overdraft'] as const).map((kind) => ({ kind })),
    ...(['subscription', 'credits', 'packs', 'overdraft'] as const).map((balance) => ({ balance })),
    ...[null, 'unknown', ...balances.packs.map((pack) => pack.id)].map((pack) => ({ pack })),
    // Another job's id is noticed when that job was charged too: the ledger does not know which jobs there are.
    ...[null, ...entries.map((one) => one.job)].map((job) => ({ job })),
  ];
  const ways = [
    [],
    [entry, entry],
    ...others.filter((change) => !isSame(entry, change)).map((change) => [{ ...entry, ...change }]),
  ];
  return entries.toSpliced(at, 1, ...(ways[way % ways.length] ?? []));
}

function isSame(entry: LedgerEntry, change: Partial<LedgerEntry>): boolean {
  return Object.entries(change).every(([name, value]) => entry[name as keyof LedgerEntry] === value);
}

function anEntry(
  kind: LedgerEntry['kind'],
  balance: LedgerEntry['balance'],
  amount: number,
  names: Partial<LedgerEntry> = {},
): LedgerEntry {
  return { at: 1, entry: '1-0', kind, balance, amount, job: null, pack: null, ...names };
}

function anOpening(): Opening {
  const packs = new Map([['p', { total: 5, used: 4 }]]);
  return { subscription: 2, credits_given: 6, credits_consumed: 2, paid: 9, packs };
}
