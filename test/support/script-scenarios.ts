import { randomBytes, randomUUID } from 'node:crypto';
import type { CreditCall } from '../../src/store/access/admit-call.ts';
import { authorize } from '../../src/store/access/authorize.ts';
import { chargeCall } from '../../src/store/access/charge-call.ts';
import { clearBlock } from '../../src/store/access/clear-block.ts';
import { countAuthFailure } from '../../src/store/access/count-auth-failure.ts';
import { beginDrain, endDrain } from '../../src/store/access/drain.ts';
import { refuseCall, releaseCall } from '../../src/store/access/release-call.ts';
import { createAccount } from '../../src/store/accounts/create-account.ts';
import { createKey } from '../../src/store/accounts/create-key.ts';
import { deleteKey } from '../../src/store/accounts/delete-key.ts';
import { removeAccount } from '../../src/store/accounts/remove-account.ts';
import { removePlan } from '../../src/store/accounts/remove-plan.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { setKey } from '../../src/store/accounts/set-key.ts';
import { noteBackupTaken } from '../../src/store/backup/backup-notes.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { openRequestLog } from '../../src/store/log/write-lines.ts';
import { addPack } from '../../src/store/money/add-pack.ts';
import { noteCard } from '../../src/store/money/card-expiry.ts';
import { grantCredits } from '../../src/store/money/grant-credits.ts';
import { removeOffer, setOffer } from '../../src/store/money/offers.ts';
import { returnPeriod } from '../../src/store/money/return-period.ts';
import { rollPeriod } from '../../src/store/money/roll-period.ts';
import { setTopup } from '../../src/store/money/set-topup.ts';
import { noteOperation } from '../../src/store/note-operation.ts';
import { batchScenarios } from './batch-scenarios.ts';
import { freeLine } from './free-line.ts';
import { type Account, busy, jobScenarios, running, type Scenario, type Step, withWebhook } from './job-scenarios.ts';
import { logScenarios } from './log-scenarios.ts';
import { peopleScenarios } from './people-scenarios.ts';
import { purchaseScenarios, topup } from './purchase-scenarios.ts';
import {
  type AccountOptions,
  admitted,
  anAccount,
  aPlan,
  ask,
  completed,
  failed,
  holder,
  type TestStore,
} from './record.ts';
import { aLog } from './redis.ts';

const anOffer = { name: 'big', title: 'Big', credits: 9, price_cents: 900, currency: 'eur' } as const;
const storedCard = { id: 'evt_1', at: 1, is: 'stored' } as const;

function settling(
  wanted: AccountOptions,
  end = completed,
  call: Partial<CreditCall> = {},
  more?: (account: Account) => Step,
): Scenario {
  return async (store) => {
    const { caller, job, account } = await running(store, wanted, call);
    await more?.(caller)(store);
    return { account, step: (s) => settleJob(s, holder, job, end) };
  };
}

function admitting(call: Partial<CreditCall>): Scenario {
  return async (store) => {
    const caller = await anAccount(store, { ...busy, quotas: { daily: 9, weekly: 9, monthly: 9, total: 9 } });
    await admitted(store, caller);
    // Buckets of the windows have passed since.
    store.advance(3 * 3600_000);
    const id = randomUUID();
    return { account: caller.accountId, step: (s) => ask(s, caller, { ...call, id }) };
  };
}

/** A synchronous call that is about to end. */
type Called = Parameters<typeof chargeCall>[1] & { readonly hash: string };

function calling(end: (store: TestStore, call: Called) => Promise<unknown>): Scenario {
  return async (store) => {
    const caller = await anAccount(store, { packs: [1], credits: 3 });
    const repeat = { key: 'k', request: 'r' };
    const id = await admitted(store, caller, { work: { holdMs: 60_000 }, repeat });
    const line = { keyId: caller.keyId, line: 'GET /v1/media/metadata', ip: '', answer: '{}' };
    const call = { id, accountId: caller.accountId, endpoint: 'metadata', repeat, hash: caller.hash, ...line } as const;
    return { account: caller.accountId, step: (s) => end(s, call) };
  };
}

/** Every script that writes, by its name; words behind it tell scenarios of one script apart. */
export const scenarios: Readonly<Record<string, Scenario>> = {
  ...jobScenarios,
  ...batchScenarios,
  ...logScenarios,
  ...peopleScenarios,
  ...purchaseScenarios,
  'admit-call of a job': admitting({ ...withWebhook, repeat: { key: 'k', request: 'r' } }),
  'admit-call of a synchronous call': admitting({ work: { holdMs: 60_000 }, repeat: { key: 'k', request: 'r' } }),
  'charge-call from a pack': calling((s, call) => chargeCall(s, call, 5)),
  'charge-call without a stored answer': calling((s, call) => chargeCall(s, { ...call, answer: '' }, 5)),
  'release-call': calling((s, call) => releaseCall(s, call, 500)),
  'release-call of one that is refused': calling((s, { hash, ...call }) =>
    refuseCall(s, { ...call, hash, holdMs: 60_000 }),
  ),
  'settle-job from the quota': settling(busy, completed, withWebhook),
  'settle-job from a pack that is then empty': settling({ packs: [1, 2] }),
  'settle-job from credits': settling({ credits: 3 }),
  'settle-job with an overdraft': settling(
    { credits: 1 },
    completed,
    {},
    ({ accountId }) =>
      (s) =>
        s.connection
          .send(['HSET', `{trawl}:account:${accountId}`, 'credits_consumed', '1'])
          .then(() => s.connection.send(['DEL', `{trawl}:ledger:${accountId}`])),
  ),
  'settle-job with a top-up': settling(
    { quota: 1, paid: true },
    completed,
    {},
    ({ accountId }) =>
      (s) =>
        setTopup(s, accountId, topup),
  ),
  'settle-job with a top-up that a clock ahead bought': settling(
    { quota: 1, paid: true },
    completed,
    {},
    ({ accountId }) =>
      (s) =>
        setTopup(s, accountId, { ...topup, last_purchase_at: String(Date.UTC(2222, 1)) }),
  ),
  'settle-job of a failed job': settling(busy, failed, withWebhook),
  'settle-job while another job waits': settling(
    { ...busy, concurrency: 1 },
    completed,
    {},
    (caller) => (s) => admitted(s, caller),
  ),
  'grant-credits': account({}, (caller) => (s) => grantCredits(s, caller.accountId, 5, { id: 'once' })),
  'add-pack': account({ quota: 2 }, (caller) => {
    const pack = { id: 'p1', title: 'P', total: 5, purchased_at: 1 };
    return (s) => addPack(s, caller.accountId, pack);
  }),
  'roll-period': account({ quota: 2 }, (caller) => (s) => rollPeriod(s, caller.accountId), 40 * 86_400_000),
  'return-period': async (store) => {
    const { accountId } = await anAccount(store, { quota: 2 });
    store.advance(400 * 86_400_000);
    await rollPeriod(store, accountId);
    store.advance(-400 * 86_400_000);
    await returnPeriod(store, accountId);
    store.advance(86_400_000);
    return { account: accountId, step: (s) => returnPeriod(s, accountId) };
  },
  'set-topup': account({}, (caller) => (s) => setTopup(s, caller.accountId, topup, storedCard)),
  'note-card': async (store) => {
    const { accountId } = await anAccount(store);
    await setTopup(store, accountId, { payment_method: 'pm_1' });
    const expires = store.clock.now() + 20 * 86_400_000;
    return { account: accountId, step: (s) => noteCard(s, accountId, 'pm_1', { label: 'visa 4242', expires }) };
  },
  'set-account with its first plan': account({ credits: 1 }, (caller) => async (s) => {
    return setAccount(s, caller.accountId, { plan: 'other', weight: 3 });
  }),
  'set-account with another plan': account(
    { quota: 2 },
    (caller) => (s) => setAccount(s, caller.accountId, { plan: 'other', stats: true }),
  ),
  'set-account without a plan': account(
    { quota: 2 },
    (caller) => (s) => setAccount(s, caller.accountId, { plan: null }),
  ),
  'create-account': account({}, () => {
    const id = randomBytes(16).toString('hex');
    return (s) => createAccount(s, id, 'fresh', { name: 'Fresh', plan: 'other' });
  }),
  'remove-account': account({ quota: 2 }, (caller) => (s) => removeAccount(s, caller.accountId, caller.slug)),
  'create-key': account({}, (caller) => (s) => createKey(s, caller.accountId, { id: 'k', alias: 'k', hash: 'h' })),
  'set-key': account(
    {},
    (caller) => (s) => setKey(s, caller.accountId, caller.keyId.slice(0, 8), { category: 'c', active: false }),
  ),
  'delete-key': account({}, (caller) => (s) => deleteKey(s, caller.accountId, caller.keyId.slice(0, 8))),
  'backup-notes': account({}, () => (s) => noteBackupTaken(s, 7)),
  'begin-drain': account({}, () => (s) => beginDrain(s)),
  'end-drain': async (store) => {
    await beginDrain(store);
    return { step: (s) => endDrain(s) };
  },
  'note-operation': account(
    {},
    ({ accountId }) =>
      (s) =>
        noteOperation(s, accountId, { action: 'job.cancel', target: 'id' }),
  ),
  'set-plan': account({}, () => (s) => aPlan(s, 'other', { quota: 9 })),
  'set-offer': account({}, () => (s) => setOffer(s, anOffer)),
  'remove-offer': async (store) => {
    await setOffer(store, anOffer);
    return { step: (s) => removeOffer(s, anOffer.name) };
  },
  'remove-plan': account({}, () => (s) => removePlan(s, 'other')),
  authorize: account(busy, (caller) => (s) => authorize(s, caller), 400),
  'count-auth-failure': account(
    {},
    () => (s) => countAuthFailure(s, '192.0.2.7', { maxFailures: 1, windowMs: 1000, blockMs: 1000 }),
  ),
  'clear-block': async (store) => {
    await countAuthFailure(store, '192.0.2.7', { maxFailures: 1, windowMs: 1000, blockMs: 1000 });
    return { step: (s) => clearBlock(s, '192.0.2.7') };
  },
  'write-lines': account({}, (caller) => async (s) => {
    const { log, lines: said } = aLog();
    const lines = openRequestLog(s, 100, log);
    for (const status of [200, 404]) {
      lines.add(caller, { ...freeLine, at: 5, status });
    }
    await lines.close();
    if (said.length > 0) throw new Error(said.join());
  }),
};

function account(wanted: AccountOptions, step: (caller: Account) => Step, laterMs = 0): Scenario {
  return async (store) => {
    await aPlan(store, 'other', { quota: 7 });
    const caller = await anAccount(store, wanted);
    if (wanted.perSecond !== undefined) await authorize(store, caller);
    store.advance(laterMs);
    return { account: caller.accountId, step: step(caller) };
  };
}
