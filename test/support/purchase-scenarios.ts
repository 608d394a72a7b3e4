import type { Purchase } from '../../src/model/purchase.ts';
import { removeAccount } from '../../src/store/accounts/remove-account.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { endMail } from '../../src/store/mail/end-mail.ts';
import { takeMail } from '../../src/store/mail/take-mail.ts';
import { dropPurchase } from '../../src/store/money/drop-purchase.ts';
import { endPurchase } from '../../src/store/money/end-purchase.ts';
import { lookAtTopup } from '../../src/store/money/look-at-topup.ts';
import { reversePurchase } from '../../src/store/money/reverse-purchase.ts';
import { setTopup } from '../../src/store/money/set-topup.ts';
import { takePurchase } from '../../src/store/money/take-purchase.ts';
import type { Scenario, Step } from './job-scenarios.ts';
import { anAccount, aRunningJob, completed, holder, type TestStore } from './record.ts';

export const topup = {
  enabled: '1',
  threshold_percent: '30',
  pack_title: 'More',
  pack_total: '10',
  price_cents: '500',
  currency: 'eur',
  customer: 'c',
  payment_method: 'm',
};
const wasPaid = { verdict: 'paid', payment: 'pi_1', seller: { name: '', address: '', tax: '' } } as const;
const visit: Omit<Purchase, 'account'> = {
  ...{ id: 'visit', kind: 'offer', pack_title: 'Big', pack_total: 9, price_cents: 900, currency: 'eur' },
  ...{ customer: 'c', payment_method: 'm' },
};
const wasDeclined = { verdict: 'declined', payment: '', reason: 'no' } as const;
const purchaseOf = async (store: TestStore, account: string) => {
  const purchase = await takePurchase(store, account, 60_000);
  if (purchase === null || purchase === 'capped') throw new Error(`no purchase: ${purchase}`);
  return purchase;
};
const mailOf = async (store: TestStore, account: string) => {
  const mail = await takeMail(store, `alert-${account}`, 60_000);
  if (mail === null || mail === 'given_up') throw new Error(`no mail: ${mail}`);
  return mail;
};

/** A purchase that a charge has asked for. */
function purchasing(step: (store: TestStore, account: string) => Promise<Step>): Scenario {
  return async (store) => {
    const caller = await anAccount(store, { quota: 1, paid: true });
    await setTopup(store, caller.accountId, topup);
    await settleJob(store, holder, await aRunningJob(store, caller), completed);
    return { account: caller.accountId, step: await step(store, caller.accountId) };
  };
}

/** An account that has used up its plan and, so many hours ago, the pack that its top-up bought; another cap has it looked at. */
function emptied(hours: number): Scenario {
  return async (store) => {
    const caller = await anAccount(store, { quota: 1, paid: true });
    await setTopup(store, caller.accountId, { ...topup, pack_total: '1' });
    const use = async () => settleJob(store, holder, await aRunningJob(store, caller), completed);
    await use();
    await endPurchase(store, await purchaseOf(store, caller.accountId), wasPaid);
    await use();
    store.advance(hours * 3_600_000);
    await setTopup(store, caller.accountId, { monthly_cap_cents: '9000' });
    return { account: caller.accountId, step: (s) => lookAtTopup(s, caller.accountId) };
  };
}

/** Every script of purchases and mails that writes; names as in `scenarios`. */
export const purchaseScenarios: Readonly<Record<string, Scenario>> = {
  'take-purchase': purchasing(async (_, account) => (s) => takePurchase(s, account, 1000)),
  'take-purchase that is dropped': purchasing(async (store, account) => {
    await setTopup(store, account, { enabled: '0' });
    return (s) => takePurchase(s, account, 1000);
  }),
  'take-purchase of an account that is suspended': purchasing(async (store, account) => {
    await setAccount(store, account, { suspended: true });
    return (s) => takePurchase(s, account, 1000);
  }),
  'drop-purchase of an account that is suspended': purchasing(async (store, account) => {
    const purchase = await purchaseOf(store, account);
    await setAccount(store, account, { suspended: true });
    return (s) => dropPurchase(s, purchase);
  }),
  'end-purchase that is paid': purchasing(async (store, account) => {
    const purchase = await purchaseOf(store, account);
    return (s) => endPurchase(s, purchase, wasPaid);
  }),
  'end-purchase that is declined': purchasing(async (store, account) => {
    const purchase = await purchaseOf(store, account);
    return (s) => endPurchase(s, purchase, wasDeclined);
  }),
  'end-purchase that is paid after its decline, by an event': purchasing(async (store, account) => {
    const purchase = await purchaseOf(store, account);
    await endPurchase(store, purchase, wasDeclined);
    return (s) => endPurchase(s, purchase, wasPaid, 'evt_1');
  }),
  'end-purchase that is paid by an account that was removed': async (store) => {
    const { accountId, slug } = await anAccount(store);
    await removeAccount(store, accountId, slug);
    return { account: accountId, step: (s) => endPurchase(s, { ...visit, account: accountId }, wasPaid, 'evt_1') };
  },
  'reverse-purchase of a pack': purchasing(async (store, account) => {
    const purchase = await purchaseOf(store, account);
    await endPurchase(store, purchase, wasPaid);
    return (s) => reversePurchase(s, purchase, 'disputed', 'pi_1');
  }),
  'reverse-purchase that is disputed after its refund': purchasing(async (store, account) => {
    const purchase = await purchaseOf(store, account);
    await endPurchase(store, purchase, wasPaid);
    await reversePurchase(store, purchase, 'refunded', 'pi_1');
    return (s) => reversePurchase(s, purchase, 'disputed', 'pi_1');
  }),
  'reverse-purchase under way': purchasing(async (store, account) => {
    const purchase = await purchaseOf(store, account);
    return (s) => reversePurchase(s, purchase, 'refunded', 'pi_1', 'evt_1');
  }),
  'take-purchase past the cap': purchasing(async (store, account) => {
    await setTopup(store, account, { monthly_cap_cents: '1' });
    return (s) => takePurchase(s, account, 1000);
  }),
  'look-at-topup that asks for a purchase': emptied(73),
  'look-at-topup that notes the next one': emptied(1),
  'take-mail': purchasing(async (_, account) => (s) => takeMail(s, `alert-${account}`, 1000)),
  'take-mail that is given up': purchasing(async (store, account) => {
    store.advance(8 * 86_400_000);
    return (s) => takeMail(s, `alert-${account}`, 1000);
  }),
  'end-mail that is sent': purchasing(async (store, account) => {
    const mail = await mailOf(store, account);
    return (s) => endMail(s, mail, [], null);
  }),
  'end-mail that is tried again': purchasing(async (store, account) => {
    const mail = await mailOf(store, account);
    return (s) => endMail(s, mail, ['a@example.com'], 1000);
  }),
};
