import { type AccountBalances, type Balance, subscriptionLeft } from './money.ts';

/** Money that moved (D81). The ledger is append-only. */
export interface LedgerEntry {
  /** Milliseconds. */
  readonly at: number;
  readonly entry: string;
  readonly kind: 'grant' | 'charge' | 'lapse' | 'overdraft';
  readonly balance: Balance;
  readonly amount: number;
  /** Job that a charge or an overdraft is for, or the hold of a synchronous call. */
  readonly job: string | null;
  readonly pack: string | null;
  readonly reason?: string;
}

/** Start of a replay: the balances after the entries that were archived. */
export interface Opening {
  readonly subscription: number;
  readonly credits_given: number;
  readonly credits_consumed: number;
  /** Calls that were charged, overdrafts included. */
  readonly paid: number;
  readonly packs: ReadonlyMap<string, { readonly total: number; readonly used: number }>;
}

interface Balances extends Opening {
  readonly granted: number;
  readonly charged: number;
  readonly lapsed: number;
  readonly overdrafts: number;
  readonly problems: readonly string[];
}

type Running = { -readonly [F in Exclude<keyof Balances, 'packs' | 'problems'>]: number } & {
  packs: Map<string, { total: number; used: number }>;
};

const nothing: Opening = { subscription: 0, credits_given: 0, credits_consumed: 0, paid: 0, packs: new Map() };

/** A ledger of millions of charges is replayed in little memory; a second charge further apart shows in the number of all. */
const recentJobs = 10_000;

const moneyBalances: readonly Balance[] = ['subscription', 'packs', 'credits'];
/** Which balances a kind of entry may move, and whether it pays for one call. */
const kinds: Readonly<Record<LedgerEntry['kind'], { balances: readonly Balance[]; paysCall: boolean }>> = {
  grant: { balances: moneyBalances, paysCall: false },
  charge: { balances: moneyBalances, paysCall: true },
  lapse: { balances: ['subscription', 'packs'], paysCall: false },
  overdraft: { balances: ['overdraft'], paysCall: true },
};

const sums = { grant: 'granted', charge: 'charged', lapse: 'lapsed', overdraft: 'overdrafts' } as const;

export function beginReplay(opening: Opening = nothing) {
  const packs = new Map([...opening.packs].map(([id, { total, used }]) => [id, { total, used }]));
  const { subscription, credits_given, credits_consumed, paid } = opening;
  const moved = { granted: 0, charged: 0, lapsed: 0, overdrafts: 0 };
  const running: Running = { subscription, credits_given, credits_consumed, paid, packs, ...moved };
  const problems: string[] = [];
  const jobs = rememberRecent(recentJobs);
  return {
    /** An entry that is not well formed is a problem and moves nothing. */
    take(entries: Iterable<LedgerEntry>) {
      for (const entry of entries) {
        const fault = faultOf(entry);
        const found = fault === null ? move(running, entry) : [fault];
        if (fault === null && entry.job !== null && !jobs.add(entry.job))
          found.push(`charges job ${entry.job} a second time`);
        for (const problem of found) problems.push(`Entry ${entry.entry} ${problem}`);
      }
    },
    balances: (): Balances => ({ ...running, problems }),
  };
}

/** Remembers at least the last `count` words, and at most twice as many; `add` returns false for one that it remembers. */
function rememberRecent(count: number): { add(word: string): boolean } {
  let [older, newer] = [new Set<string>(), new Set<string>()];
  return {
    add(word) {
      if (newer.has(word) || older.has(word)) return false;
      if (newer.size >= count) [older, newer] = [newer, new Set()];
      newer.add(word);
      return true;
    },
  };
}

/** The balances that entries, oldest first, come to. */
export function replay(entries: Iterable<LedgerEntry>, opening: Opening = nothing): Balances {
  const replaying = beginReplay(opening);
  replaying.take(entries);
  return replaying.balances();
}

/** Returns one sentence for each difference between an account's ledger, and its balances, open holds and completed jobs and calls. */
export function differences(
  replayed: Balances,
  balances: AccountBalances,
  seen: { readonly holds: number; readonly completed: number },
): string[] {
  const kept = new Map(balances.packs.map((pack) => [pack.id, pack]));
  const rows: [what: string, byLedger: number | undefined, byBalances: number | undefined][] = [
    ['What is left of the subscription', replayed.subscription, subscriptionLeft(balances)],
    ['The sum of credits given', replayed.credits_given, balances.credits_given],
    ['The sum of credits consumed', replayed.credits_consumed, balances.credits_consumed],
  ];
  for (const id of new Set([...replayed.packs.keys(), ...kept.keys()])) {
    rows.push([`The total of pack ${id}`, replayed.packs.get(id)?.total, kept.get(id)?.total]);
    rows.push([`What is used of pack ${id}`, replayed.packs.get(id)?.used, kept.get(id)?.used]);
  }
  const unequal = rows
    .filter(([, byLedger, byBalances]) => byLedger !== byBalances)
    .map(
      ([what, byLedger, byBalances]) =>
        `${what} is ${byLedger ?? 'not'} in the ledger and ${byBalances ?? 'not'} in the balances`,
    );
  const held = `What is held is ${balances.held} in the balances and ${seen.holds} by the open holds`;
  const paid = `The number of completed jobs and calls is ${seen.completed}, and ${replayed.paid} are charged in the ledger`;
  return [
    ...replayed.problems,
    ...unequal,
    ...(balances.held === seen.holds ? [] : [held]),
    ...(replayed.paid === seen.completed ? [] : [paid]),
  ];
}

function faultOf({ kind, balance, amount, job, pack }: LedgerEntry): string | null {
  // Entries come from the record, where a word may be any text.
  const rule = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  if (!rule) return `has the unknown kind ${kind}`;
  if (!rule.balances.includes(balance)) return `has the kind ${kind}, but the balance ${balance}`;
  if (!Number.isSafeInteger(amount) || amount < 1) return `has the amount ${amount}, which is no positive whole number`;
  if (rule.paysCall && amount !== 1) return `has the kind ${kind}, but the amount ${amount}: one call costs 1`;
  if (rule.paysCall !== (job !== null)) return `has the kind ${kind}, but names ${job === null ? 'no' : 'a'} job`;
  const namesPackRightly = (balance === 'packs') === (pack !== null);
  return namesPackRightly ? null : `has the balance ${balance}, but names ${pack === null ? 'no' : 'a'} pack`;
}

function move(running: Running, { kind, balance, amount, pack }: LedgerEntry): string[] {
  running[sums[kind]] += amount;
  if (kinds[kind].paysCall) running.paid += 1;
  if (kind === 'overdraft') return [];
  const isGrant = kind === 'grant';
  if (balance === 'packs') return movePack(running.packs, String(pack), kind, amount);
  if (balance === 'subscription') {
    running.subscription += isGrant ? amount : -amount;
    return sinks(running.subscription, isGrant, amount) ? ['takes the subscription below zero'] : [];
  }
  running[isGrant ? 'credits_given' : 'credits_consumed'] += amount;
  const left = running.credits_given - running.credits_consumed;
  return sinks(left, isGrant, amount) ? ['takes the credits below zero'] : [];
}

function movePack(packs: Running['packs'], id: string, kind: LedgerEntry['kind'], amount: number): string[] {
  const isGrant = kind === 'grant';
  const known = packs.get(id);
  const pack = known ?? { total: 0, used: 0 };
  packs.set(id, pack);
  // The rest of a pack whose payment was refunded lapses: the pack is then as large as what was used of it.
  if (kind === 'lapse') pack.total -= amount;
  else pack[isGrant ? 'total' : 'used'] += amount;
  if (isGrant) return known ? [`adds pack ${id} a second time`] : [];
  if (!known) return [`draws from pack ${id}, which was never added`];
  return sinks(pack.total - pack.used, isGrant, amount) ? [`takes pack ${id} below zero`] : [];
}

/** Returns true if this very amount brought the balance below zero, so that one fault is reported once. */
function sinks(left: number, isGrant: boolean, amount: number): boolean {
  return !isGrant && left < 0 && left + amount >= 0;
}
