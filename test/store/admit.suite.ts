import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { admitCall, CreditCall } from '../../src/store/access/admit-call.ts';
import type { Caller } from '../../src/store/access/authorize.ts';
import { pollJob } from '../../src/store/access/poll-job.ts';
import { listKeys } from '../../src/store/accounts/read-keys.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { setKey } from '../../src/store/accounts/set-key.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { keys } from '../../src/store/keys.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import {
  aDownload,
  anAccount,
  admitted as askToAdmit,
  ask as askWith,
  type TestStore,
  theJob,
} from '../support/record.ts';

const minutes = 60_000;
const hours = 60 * minutes;

/** Admission: the order of D10, the hold and idempotency. */
export function admitSuite(store: () => TestStore, admit: typeof admitCall): void {
  const ask = (its: TestStore, caller: Caller, call?: Partial<CreditCall>) => askWith(its, caller, call, admit);
  const admitted = (its: TestStore, caller: Caller, call?: Partial<CreditCall>) => askToAdmit(its, caller, call, admit);
  const held = async (account: string) => (await readSnapshot(store(), account)).balances.held;

  it('records and queues a job and holds one credit, in one step', async () => {
    const caller = await anAccount(store(), { credits: 2 });
    const id = await admitted(store(), caller);
    const polled = await pollJob(store(), caller, id);
    expect('job' in polled && polled.job).to.deep.include({ id, status: 'QueuedJob', progress: 0, attempt: 0 });
    expect('position' in polled && polled.position).to.deep.equal({ before: 0, running: 0, concurrency: null });
    expect(await held(caller.accountId)).to.equal(1);
  });

  it('admits one of 200 simultaneous calls on one credit', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    const answers = await Promise.all([...Array(200)].map(() => ask(store(), caller)));
    expect(answers.filter((answer) => 'admitted' in answer)).to.have.length(1);
    expect(answers.filter((answer) => 'refused' in answer && answer.refused === 'payment_required')).to.have.length(
      199,
    );
    expect(await held(caller.accountId)).to.equal(1);
  });

  it('D10: refuses by permission, then quota, then parameters, then balance, and holds nothing', async () => {
    const caller = await anAccount(store(), { quotas: { total: 0 } });
    const { alias } = (await listKeys(store(), caller.accountId))[0]!;
    const word = async () => {
      const answer = await ask(store(), caller, { valid: false, isOpen: false });
      return 'refused' in answer ? answer.refused : 'admitted';
    };
    await setAccount(store(), caller.accountId, { suspended: true });
    expect(await word()).to.equal('forbidden');
    await setAccount(store(), caller.accountId, { suspended: false });
    expect(await word()).to.equal('key_quota_exceeded');
    await setKey(store(), caller.accountId, alias, { quotas: { total: null } });
    expect(await word()).to.equal('bad_request');
    const poor = await ask(store(), caller, { isOpen: false });
    expect('refused' in poor && poor.refused).to.equal('payment_required');
    expect(await held(caller.accountId)).to.equal(0);
  });

  it('refuses with payment_required while the invoice is unpaid', async () => {
    const caller = await anAccount(store(), { credits: 5, invoice: 'unpaid' });
    expect(await ask(store(), caller)).to.deep.include({ refused: 'payment_required' });
    await setAccount(store(), caller.accountId, { invoice: 'paid' });
    expect(await ask(store(), caller)).to.have.property('admitted');
  });

  it('refuses with unavailable and holds nothing when Redis has no memory', async () => {
    const caller = await anAccount(store(), { credits: 5 });
    expect(await ask(store(), caller, { isOpen: false })).to.deep.include({ refused: 'unavailable' });
    expect(await held(caller.accountId)).to.equal(0);
  });

  it('refuses more open jobs than the account may have, and admits again when one has ended', async () => {
    const caller = await anAccount(store(), { credits: 5, max_open: 2 });
    const first = await admitted(store(), caller);
    await admitted(store(), caller);
    expect(await ask(store(), caller)).to.deep.include({ refused: 'rate_limited', detail: 'open-jobs' });
    await cancelJob(store(), await theJob(store(), first));
    await admitted(store(), caller);
  });

  it('D12: answers a repeat with the same job, refuses other parameters, and forgets the key after 24 hours', async () => {
    const caller = await anAccount(store(), { credits: 5 });
    const repeat = { key: 'k', request: 'a' };
    const first = await admitted(store(), caller, { repeat });
    expect(await ask(store(), caller, { repeat })).to.deep.include({ repeated: first });
    const other = await ask(store(), caller, { repeat: { key: 'k', request: 'b' } });
    expect(other).to.deep.include({ refused: 'idempotency_conflict' });
    expect(await held(caller.accountId)).to.equal(1);
    const key = keys.repeat(caller.accountId, 'k');
    expect(Number(await store().connection.send(['PTTL', key]))).to.be.within(1, 24 * hours);
    store().advance(24 * hours);
    expect(await admitted(store(), caller, { repeat })).not.to.equal(first);
  });

  it('changes nothing when the job to record is malformed', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    const webhook = { url: 'https://example.com/\ud800', receiver: 'example.com', authorization: '' };
    const failure = await ask(store(), caller, { work: { ...aDownload, webhook } }).catch((error: Error) => error);
    expect(failure).to.be.instanceOf(Error);
    expect((await verifyLedger(store(), caller.accountId)).problems).to.deep.equal([]);
    expect(await held(caller.accountId)).to.equal(0);
    await admitted(store(), caller);
  });

  it('does not remember a refused call for its Idempotency-Key', async () => {
    const caller = await anAccount(store());
    const repeat = { key: 'k', request: 'a' };
    expect(await ask(store(), caller, { repeat })).to.deep.include({ refused: 'payment_required' });
    expect(await ask(store(), caller, { repeat })).to.deep.include({ refused: 'payment_required' });
  });

  it('judges simultaneous calls of one key one after the other', async () => {
    const caller = await anAccount(store(), { credits: 9, max_open: 3, perMinute: 8 });
    const repeat = { key: 'k', request: 'a' };
    const half = { url: 'https://example.com/\ud800', receiver: 'example.com', authorization: '' };
    const answers = await Promise.all([
      ask(store(), caller, { repeat }),
      ask(store(), caller, { repeat }),
      ask(store(), caller, { repeat: { key: 'k', request: 'b' } }),
      ask(store(), caller, { work: { ...aDownload, webhook: half } }).catch((error: Error) => error.name),
      ask(store(), caller, { valid: false }),
      ask(store(), caller, { work: { holdMs: 60_000 } }),
      ask(store(), caller),
      ask(store(), caller),
      ask(store(), caller),
      ask(store(), caller),
    ]);
    const [first] = answers;
    const words = answers.map((answer) => {
      if (typeof answer === 'string') return answer;
      if ('refused' in answer) return [answer.refused, answer.detail, answer.rates.perMinute?.left].join(' ').trim();
      return 'repeated' in answer ? [answer.repeated, answer.rates.perMinute?.left] : answer.held;
    });
    const id = first !== undefined && typeof first !== 'string' && 'admitted' in first && first.admitted;
    expect(words).to.deep.equal([
      1,
      [id, 6],
      'idempotency_conflict request 5',
      'Error',
      'bad_request  4',
      2,
      3,
      4,
      'rate_limited open-jobs 0',
      'rate_limited per-minute 0',
    ]);
    expect(await held(caller.accountId)).to.equal(4);
    expect((await verifyLedger(store(), caller.accountId)).problems).to.deep.equal([]);
  });

  const limits = [
    ['per-second', 1, { perSecond: 3 }],
    ['per-minute', 60, { perMinute: 3 }],
    ['daily', 24 * 3600, { quotas: { daily: 3 } }],
    ['weekly', 7 * 24 * 3600, { quotas: { weekly: 3 } }],
    ['monthly', 30 * 24 * 3600, { quotas: { monthly: 3 } }],
  ] as const;
  for (const [detail, seconds, wanted] of limits) {
    it(`gives each of several simultaneous refused calls the same Retry-After as a single one: ${detail}`, async () => {
      const caller = await anAccount(store(), { credits: 50, ...wanted });
      store().freezeClock();
      const answers = await Promise.all([...Array(6)].map(() => ask(store(), caller)));
      const refused = answers.filter((answer) => 'refused' in answer);
      expect(refused).to.have.length(3);
      const single = await ask(store(), caller);
      for (const answer of [...refused, single]) {
        expect(answer).to.include({ detail });
        expect('refused' in answer && answer.retryAfterSeconds).to.be.within(seconds, seconds * 1.1 + 1);
      }
    });
  }

  it('queues jobs of one millisecond in their order', async () => {
    const caller = await anAccount(store(), { credits: 70 });
    const ids = await Promise.all([...Array(70)].map(() => admitted(store(), caller)));
    const queue = keys.queue(caller.accountId);
    expect(await store().connection.read(['ZRANGE', queue, '0', '-1'])).to.deep.equal(ids);
  });

  it('shows no job to another account', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    const id = await admitted(store(), caller);
    const stranger = await anAccount(store());
    expect(await pollJob(store(), stranger, id)).to.deep.include({ refused: 'not_found' });
    expect(await pollJob(store(), caller, randomUUID())).to.deep.include({ refused: 'not_found' });
  });
}
