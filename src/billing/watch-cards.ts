import { startPeriodicTask } from '../base/periodic-task.ts';
import { dueCards, noteCard } from '../store/money/card-expiry.ts';
import { readTopup } from '../store/money/set-topup.ts';
import { reportUpkeep, type UpkeepParts } from '../store/upkeep-parts.ts';
import type { PaymentProvider } from './payment-provider.ts';

interface CardOptions extends UpkeepParts {
  readonly provider: Pick<PaymentProvider, 'card'>;
  /** Time between two polls of what is due. */
  readonly intervalMs?: number;
}

const defaultIntervalMs = 30_000;

/** Looks up when stored cards expire, so that their owners are told before. Any number of controllers may do so. */
export function startCardWatch(options: CardOptions) {
  const { store, intervalMs = defaultIntervalMs } = options;
  const poll = async (isClosing: () => boolean) => {
    // A clock that is ahead would have cards forgotten that have not ended yet.
    if (!store.connection.clock.isSteady()) return;
    for (const account of await dueCards(store)) if (!isClosing()) await lookUp(options, account);
  };
  const failed = reportUpkeep(options, 'card', 'stored cards could not be looked up: they are tried again');
  return startPeriodicTask(poll, intervalMs, failed);
}

async function lookUp({ store, provider, metrics, log }: CardOptions, account: string): Promise<void> {
  const { payment_method: method = '' } = await readTopup(store, account);
  const found = async () => (method === '' ? null : provider.card(method));
  const card = await found().catch((error) => {
    metrics.upkeep_errors_total.inc({ task: 'card' });
    log.warn('a stored card could not be looked up: it is tried again in an hour', { account, error });
    return 'unknown' as const;
  });
  await noteCard(store, account, method, card);
}
