import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { periodAt } from '../../src/model/billing-period.ts';
import { type AccountBalances, remaining, subscriptionLeft } from '../../src/model/money.ts';
import type { Caller } from '../../src/store/access/authorize.ts';
import { chargeCall } from '../../src/store/access/charge-call.ts';
import { releaseCall } from '../../src/store/access/release-call.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { retryJob } from '../../src/store/jobs/retry-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { workRanges } from '../../src/store/jobs/work-ranges.ts';
import { keys } from '../../src/store/keys.ts';
import { readLedger } from '../../src/store/log/read-ledger.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { grantCredits } from '../../src/store/money/grant-credits.ts';
import { rollPeriod } from '../../src/store/money/roll-period.ts';
import { aPack, aPlan, ask, completed, failed, holder, startNext, type TestStore, theJob } from './record.ts';
import { balanceToDraw, draw } from './reference-models.ts';

/** One thing that happens to an account. */
export interface AccountOperation {
  readonly what: (typeof operations)[number];
  readonly which: number;
  readonly amount: number;
}

const operations = [
  'admit',
  'admit',
  'admit',
  'start',
  'start',
  'succeed',
  'succeed',
  'fail',
  'race',
  'cancel',
  'retry',
  'late',
  'call',
  'charge',
  'release',
  'grant',
  'pack',
  'quota',
  'plan',
  'month',
  'restart',
] as const;

export const anyOperations = fc.array(
  fc.record({ what: fc.constantFrom(...operations), which: fc.nat(7), amount: fc.nat(3) }),
  { minLength: 8, maxLength: 30 },
);

/** A model of an account, whose balances must equal those of the store after every operation. */
export class AccountModel {
  readonly #store: TestStore;
  readonly #caller: Caller & { plan: string; keyId: string };
  readonly #restart: () => Promise<void>;
  readonly #open: string[] = [];
  readonly #ended: string[] = [];
  readonly #calls: string[] = [];
  #charged = 0;
  #quota = 0;
  #anchor: number | null = null;
  #balances: AccountBalances = {
    quota: 0,
    used: 0,
    period_start: null,
    period_end: null,
    packs: [],
    credits_given: 0,
    credits_consumed: 0,
    held: 0,
  };

  constructor(store: TestStore, caller: Caller & { plan: string; keyId: string }, restart: () => Promise<void>) {
    this.#store = store;
    this.#caller = caller;
    this.#restart = restart;
  }

  async apply({ what, which, amount }: AccountOperation): Promise<void> {
    const { accountId, plan } = this.#caller;
    const pick = (from: readonly string[]): string | undefined => from[which % Math.max(1, from.length)];
    const job = pick(this.#open);
    switch (what) {
      case 'admit':
        return this.#admit(false);
      case 'call':
        return this.#admit(true);
      case 'start':
        await startNext(this.#store);
        return;
      case 'succeed':
      case 'fail':
        return job === undefined ? undefined : this.#settle(job, [what]);
      case 'race':
        return job === undefined ? undefined : this.#settle(job, ['succeed', 'fail', 'cancel', 'succeed']);
      case 'cancel':
        return job === undefined ? undefined : this.#settle(job, ['cancel']);
      case 'retry':
        return job === undefined ? undefined : this.#retry(job);
      case 'late': {
        const ended = pick(this.#ended);
        return ended === undefined
          ? undefined
          : this.#endAll(ended, ['succeed', 'fail', 'cancel']).then(() => undefined);
      }
      case 'charge':
      case 'release':
        return this.#endCall(pick(this.#calls), what);
      case 'grant':
        await grantCredits(this.#store, accountId, amount + 1);
        this.#sync();
        this.#balances = { ...this.#balances, credits_given: this.#balances.credits_given + amount + 1 };
        return;
      case 'pack': {
        const id = await aPack(this.#store, accountId, amount + 1, which);
        this.#sync();
        const pack = { id, title: '', purchased_at: Date.UTC(2026, 0, 1 + which), total: amount + 1, used: 0 };
        this.#balances = { ...this.#balances, packs: [...this.#balances.packs, pack] };
        return;
      }
      case 'quota':
        await aPlan(this.#store, plan, { quota: amount });
        this.#quota = amount;
        return;
      case 'plan':
        return this.#changePlan();
      case 'month':
        this.#store.advance(31 * 86_400_000);
        await rollPeriod(this.#store, accountId);
        this.#sync();
        return;
      case 'restart':
        return which === 0 && amount === 0 ? this.#restart() : undefined;
    }
  }

  /** Throws a sentence when an invariant of the balances does not hold. */
  async check(): Promise<void> {
    const { accountId } = this.#caller;
    const { entries, problems } = await verifyLedger(this.#store, accountId);
    if (problems.length > 0) throw new Error(`${entries} entries: ${problems.join('; ')}`);
    const { balances } = await readSnapshot(this.#store, accountId);
    this.#sync();
    const numbers = (one: AccountBalances) => {
      const { quota, used, credits_given, credits_consumed, held } = one;
      const packs = Object.fromEntries(one.packs.map((pack) => [pack.id, [pack.total, pack.used]]));
      return JSON.stringify({
        quota,
        used,
        credits_given,
        credits_consumed,
        held,
        packs: Object.entries(packs).sort(),
      });
    };
    const wanted = { ...this.#balances, quota: this.#anchor === null ? 0 : this.#quota };
    if (numbers(balances) !== numbers(wanted)) throw new Error(`wanted ${numbers(wanted)}, saw ${numbers(balances)}`);
    if (Math.min(remaining(balances), subscriptionLeft(balances), balances.held) < 0)
      throw new Error(`negative: ${numbers(balances)}`);
    const paid = (await readLedger(this.#store, accountId, 1000)).filter((one) => one.job !== null);
    const charges = new Set(paid.map((one) => one.job));
    if (charges.size !== paid.length || paid.length !== this.#charged) {
      throw new Error(`${this.#charged} completed, ${paid.length} charged, ${charges.size} different`);
    }
    await this.#checkQueue();
    const lines = await readLines(this.#store, accountId, 1000);
    const credits = lines.reduce((sum, line) => sum + line.credits, 0);
    if (credits !== this.#charged) throw new Error(`${this.#charged} completed, the request log shows ${credits}`);
  }

  /** Only this account has jobs that wait. */
  async #checkQueue(): Promise<void> {
    const { connection } = this.#store;
    const own = await connection.read(['ZRANGE', keys.queue(this.#caller.accountId), '0', '-1']);
    const all = await connection.read(['ZRANGEBYSCORE', keys.openWork, ...workRanges.queued]);
    if (own.toSorted().join() !== all.toSorted().join()) throw new Error(`${own} wait, but ${all} do of all accounts`);
  }

  /** Ends what is open, so that nothing waits in the shared queue. */
  async end(): Promise<void> {
    for (const id of [...this.#open]) await this.#settle(id, ['cancel']);
  }

  /** Applies the quota of the plan and the end of a period, as the store does before money moves. */
  #sync(): void {
    if (this.#anchor === null) {
      this.#balances = { ...this.#balances, quota: 0 };
      return;
    }
    const now = this.#store.clock.now();
    const { period_end } = this.#balances;
    if (period_end !== null && now >= period_end) {
      const { start, end } = periodAt(this.#anchor, now);
      this.#balances = { ...this.#balances, used: 0, period_start: start, period_end: end };
    }
    this.#balances = { ...this.#balances, quota: this.#quota };
  }

  async #admit(isCall: boolean): Promise<void> {
    const id = randomUUID();
    const answer = await ask(this.#store, this.#caller, {
      id,
      ...(isCall ? { work: { holdMs: 9e12 } } : {}),
    });
    this.#sync();
    const may = remaining(this.#balances) - this.#balances.held >= 1;
    if ('admitted' in answer !== may) throw new Error(`admitted ${'admitted' in answer}, wanted ${may}`);
    if (!may) return;
    this.#balances = { ...this.#balances, held: this.#balances.held + 1 };
    (isCall ? this.#calls : this.#open).push(id);
  }

  async #endAll(id: string, how: readonly string[]): Promise<unknown[]> {
    const job = await theJob(this.#store, id);
    return Promise.all(
      how.map((one) =>
        one === 'cancel'
          ? cancelJob(this.#store, job)
          : settleJob(this.#store, holder, job, one === 'succeed' ? completed : failed),
      ),
    );
  }

  async #settle(id: string, how: readonly string[]): Promise<void> {
    await this.#endAll(id, how);
    const { status, ended_at } = await theJob(this.#store, id);
    if (ended_at === null) return;
    this.#open.splice(this.#open.indexOf(id), 1);
    this.#ended.push(id);
    this.#pay(status === 'CompletedJob');
  }

  async #retry(id: string): Promise<void> {
    const job = await theJob(this.#store, id);
    await retryJob(this.#store, holder, job, { counts: 'failure', code: 'timeout', notBefore: 0 });
  }

  async #endCall(id: string | undefined, how: 'charge' | 'release'): Promise<void> {
    if (id === undefined) return;
    const call = { id, accountId: this.#caller.accountId, endpoint: 'metadata', repeat: null } as const;
    const charge = () =>
      chargeCall(this.#store, { ...call, keyId: this.#caller.keyId, line: 'GET /x', ip: '', answer: '' }, 1);
    const ends =
      how === 'charge'
        ? [charge(), releaseCall(this.#store, call, 500), charge()]
        : [releaseCall(this.#store, call, 500)];
    const [first] = await Promise.all(ends);
    this.#calls.splice(this.#calls.indexOf(id), 1);
    const paid = how === 'charge' && first?.done === true;
    this.#pay(paid);
  }

  #pay(completedWell: boolean): void {
    this.#balances = { ...this.#balances, held: this.#balances.held - 1 };
    if (!completedWell) return;
    this.#sync();
    this.#charged++;
    if (balanceToDraw(this.#balances).balance !== 'overdraft') this.#balances = draw(this.#balances);
  }

  async #changePlan(): Promise<void> {
    const { accountId, plan } = this.#caller;
    const now = this.#store.clock.now();
    const has = this.#anchor !== null;
    await setAccount(this.#store, accountId, { plan: has ? null : plan });
    this.#anchor = has ? null : now;
    const { start, end } = periodAt(now, now);
    this.#balances = has
      ? { ...this.#balances, used: 0, quota: 0, period_start: null, period_end: null }
      : { ...this.#balances, quota: this.#quota, period_start: start, period_end: end };
  }
}
