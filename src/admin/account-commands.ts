import { randomBytes } from 'node:crypto';
import { inParallel } from '../base/in-parallel.ts';
import type { Account } from '../model/account.ts';
import { makeAccountId } from '../model/api-key.ts';
import { type Usage, usage } from '../model/money.ts';
import { readAccountName, readPlanName } from '../model/operator-input.ts';
import { writeTime } from '../model/timestamp.ts';
import { noteAccountResumed, revoke } from '../objects/revocations.ts';
import { createAccount } from '../store/accounts/create-account.ts';
import { findAccount, listAccounts, readAccount } from '../store/accounts/read-accounts.ts';
import { readSnapshot } from '../store/accounts/read-snapshot.ts';
import { removeAccount } from '../store/accounts/remove-account.ts';
import { type AccountChange, setAccount } from '../store/accounts/set-account.ts';
import { cancelOpenJobs } from '../store/jobs/cancel-open-jobs.ts';
import { command, fieldsGiven, type OptionsFor } from './command.ts';
import { oneOf, orNull, readsAtOnce, slug, wholeNumber, wholeNumberOrNone, yesOrNo } from './command-values.ts';
import { fieldText, listResult, timeText } from './text-table.ts';

const name = { value: 'NAME', read: readAccountName, text: 'Name for people.' } as const;
const stats = { value: 'on|off', read: yesOrNo, text: 'Access to /v1/stats; off for a new account.' } as const;
const alerts = {
  value: 'on|off',
  read: yesOrNo,
  text: 'Mails to the owners when 50, 80, 90 and 100 % of the balance are used; on for a new account.',
} as const;
const limits = {
  concurrency: {
    value: 'N|none',
    read: wholeNumberOrNone(1),
    text: 'Most jobs that run at once; no limit for a new account.',
  },
  weight: {
    value: 'N',
    read: wholeNumber(1, 1000),
    text: 'Share of the workers while accounts compete for them; 1 for a new account.',
  },
  'max-open': {
    value: 'N',
    read: wholeNumber(1, 1_000_000),
    text: 'Most jobs that wait or run; further requests are refused with 429; 10000 for a new account.',
  },
} as const satisfies Partial<OptionsFor<AccountChange>>;
const planOrNone = orNull('none', readPlanName);
const paidOrUnpaid = oneOf('paid', 'unpaid');
const newOrNone = orNull('none', oneOf('new'));

const fields = 'id, slug, name, plan, stats, invoice, suspended, concurrency, weight, max_open, alerts, created_at';

export const accountCommands = {
  'account create': command({
    text: 'Creates an account.',
    json: `{${fields}}`,
    operands: { SLUG: slug },
    options: {
      name: { ...name, required: true },
      plan: { value: 'PLAN', read: readPlanName, text: 'Plan of the account; the first billing period begins now.' },
      stats,
      alerts,
      ...limits,
    },
    run: async (given, { store }) => {
      const { SLUG, ...options } = given;
      const account = await createAccount(store, makeAccountId(randomBytes(16)), SLUG, fieldsGiven(options));
      return { value: shapeOf(account), text: fieldText(fieldsOf(account)) };
    },
  }),
  'account set': command({
    text: 'Changes an account; an option that is not given keeps its value. Suspending also cancels the open jobs.',
    json: `{${fields}, webhook_secret}`,
    operands: { SLUG: slug },
    options: {
      name,
      plan: {
        value: 'PLAN|none',
        read: planOrNone,
        text: 'Plan of the account; another plan keeps the billing period.',
      },
      stats,
      alerts,
      ...limits,
      invoice: {
        value: 'paid|unpaid',
        read: paidOrUnpaid,
        text: 'While unpaid, every request that costs a credit is refused with 402.',
      },
      suspended: { value: 'yes|no', read: yesOrNo, text: 'While suspended, every request is refused with 403.' },
      'webhook-secret': {
        value: 'new|none',
        read: newOrNone,
        text: 'Secret that signs the webhooks; a new one is shown only now.',
      },
    } satisfies OptionsFor<AccountChange>,
    run: async (given, { store, seal, objects }) => {
      const { SLUG, ...options } = given;
      const change = fieldsGiven(options);
      const id = await findAccount(store, SLUG);
      const wanted = change.webhook_secret;
      const secret = wanted === 'new' ? `whsec_${randomBytes(32).toString('base64')}` : wanted;
      const webhook_secret = secret ? (await seal()).seal('webhook_secret', secret) : secret;
      const work = () => setAccount(store, id, { ...change, webhook_secret });
      const suspension = { kind: 'account', account: id } as const;
      const now = store.clock.now();
      const account = await (given.suspended ? revoke(objects, now, suspension, work) : work());
      if (given.suspended === false) await noteAccountResumed(objects, now, id);
      const cancelled = given.suspended ? await cancelOpenJobs(store, id) : 0;
      const shown: Record<string, string> = secret ? { webhook_secret: secret } : {};
      const notes = [
        cancelled > 0 ? `Open jobs that were cancelled: ${cancelled}.\n` : '',
        secret ? 'The webhook secret cannot be shown again.\n' : '',
      ];
      return {
        value: { ...shapeOf(account), ...shown },
        text: fieldText({ ...fieldsOf(account), ...shown }) + notes.join(''),
      };
    },
  }),
  'account list': command({
    text: 'Lists all accounts.',
    json: `[{${fields}}]`,
    run: async (_, { store }) => {
      const accounts = await inParallel(readsAtOnce, await listAccounts(store), ([, id]) => readAccount(store, id));
      return listResult(accounts, shapeOf, rowOf, 'There are no accounts.');
    },
  }),
  'account show': command({
    text: 'Shows an account with its usage and the number of credits on hold.',
    json: `{${fields}, usage, held}`,
    operands: { SLUG: slug },
    run: async (given, { store }) => {
      const { account, plan, balances } = await readSnapshot(store, await findAccount(store, given.SLUG));
      const used = usage(balances, account, plan, null, store.clock.now());
      return {
        value: { ...shapeOf(account), usage: used, held: balances.held },
        text: fieldText({ ...fieldsOf(account), ...usageFields(used) }),
      };
    },
  }),
  'account remove': command({
    text: 'Removes an account without open jobs or a purchase under way, and its keys; its ledger stays.',
    json: '{removed}',
    operands: { SLUG: slug },
    run: async (given, { store, objects }) => {
      const id = await findAccount(store, given.SLUG);
      const work = () => removeAccount(store, id, given.SLUG);
      await revoke(objects, store.clock.now(), { kind: 'account', account: id }, work);
      return { value: { removed: given.SLUG }, text: `The account ${given.SLUG} is removed.\n` };
    },
  }),
};

function rowOf({ slug, name, plan, invoice, suspended, concurrency, weight, created_at }: Account) {
  return { slug, name, plan, invoice, suspended, concurrency, weight, 'created (UTC)': timeText(created_at) };
}

function shapeOf(account: Account): object {
  return { ...account, created_at: writeTime(account.created_at) };
}

function fieldsOf({ stats, alerts, created_at, ...account }: Account) {
  return {
    ...account,
    stats: stats ? 'on' : 'off',
    alerts: alerts ? 'on' : 'off',
    'created (UTC)': timeText(created_at),
  };
}

function usageFields({ remaining, held, total_used, subscription, credits, renewal_date }: Usage) {
  return {
    remaining,
    held,
    'used in all': total_used,
    'left of plan and packs': subscription.remaining,
    'left of credits': credits.remaining,
    'renewed (UTC)': renewal_date === null ? null : timeText(Date.parse(renewal_date)),
  };
}
