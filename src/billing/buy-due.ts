import { inParallel } from '../base/in-parallel.ts';
import { startPeriodicTask } from '../base/periodic-task.ts';
import { dropPurchase } from '../store/money/drop-purchase.ts';
import { dueTopupLooks, lookAtTopup } from '../store/money/look-at-topup.ts';
import { duePurchases, type TakenPurchase, takePurchase } from '../store/money/take-purchase.ts';
import { reportUpkeep } from '../store/upkeep-parts.ts';
import { applyPayment, type PaymentParts } from './apply-payment.ts';
import type { PaymentProvider } from './payment-provider.ts';

interface PurchaseOptions extends PaymentParts {
  readonly provider: PaymentProvider;
  /** Time between two polls of what is due. */
  readonly intervalMs?: number;
  /** Longer than one request with its repetitions; a purchase whose controller died is tried again after it. */
  readonly leaseMs?: number;
}

const defaultIntervalMs = 2_000;
const defaultLeaseMs = 90_000;
const maxAtOnce = 8;

/**
 * Carries out the purchases that charges asked for, and looks at the balances of accounts that may have no more charges. Any number
 * of controllers may do so: a purchase is leased, the provider charges its id once, and the record ends it once.
 */
export function startPurchases(options: PurchaseOptions) {
  const { store, intervalMs = defaultIntervalMs } = options;
  const poll = async (isClosing: () => boolean) => {
    // A wrong clock would end the 72 hours early, and charge a card.
    if (!store.connection.clock.isSteady()) return;
    for (const account of await dueTopupLooks(store)) if (!isClosing()) await checkBalance(options, account);
    await inParallel(maxAtOnce, await duePurchases(store), async (account) => {
      const sentence = 'a purchase could not be carried out: it is tried again';
      if (!isClosing()) await buy(options, account).catch(reportUpkeep(options, 'buy', sentence, { account }));
    });
  };
  const failed = reportUpkeep(options, 'buy', 'purchases could not be carried out: they are tried again');
  return startPeriodicTask(poll, intervalMs, failed);
}

async function checkBalance(options: PurchaseOptions, account: string): Promise<void> {
  const sentence = 'the balance of an account with a top-up could not be looked at: it is tried again';
  await lookAtTopup(options.store, account).catch(reportUpkeep(options, 'buy', sentence, { account }));
}

/**
 * Steps: lease (which fixes the terms), charge, end. A crash after any of them repeats the rest under the same id. What is wanted no more
 * after a try is looked up instead of charged.
 */
async function buy(options: PurchaseOptions, account: string): Promise<void> {
  const { store, provider, metrics, log, leaseMs = defaultLeaseMs } = options;
  const purchase = await takePurchase(store, account, leaseMs);
  if (purchase === null) return;
  if (purchase === 'capped') {
    metrics.purchases_total.inc({ outcome: 'capped' });
    return;
  }
  const { since, attempt, isWanted, ...terms } = purchase;
  try {
    const found = isWanted ? await provider.charge(purchase) : await provider.find(purchase);
    if (found === null) return await drop(options, purchase);
    const { state, ...paid } = found;
    const told = { purchase: terms, reason: '', at: store.clock.now(), ...paid };
    if (state !== 'pending') await applyPayment(options, { kind: state, ...told });
  } catch (error) {
    metrics.purchases_total.inc({ outcome: 'unknown' });
    log.warn('a purchase may have been charged: it is asked for again under the same id', {
      account,
      purchase: terms.id,
      attempt,
      error,
    });
  }
}

/** Drops a purchase that the provider knows no payment of. One that is wanted again, or was tried again meanwhile, goes on. */
async function drop({ store, metrics, log }: PurchaseOptions, purchase: TakenPurchase): Promise<void> {
  if (!(await dropPurchase(store, purchase))) return;
  metrics.purchases_total.inc({ outcome: 'dropped' });
  log.info('a purchase is dropped: it is wanted no more, and no try of it was paid', {
    account: purchase.account,
    purchase: purchase.id,
  });
}
