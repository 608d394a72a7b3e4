import { refuse } from '../base/errors.ts';
import { priceProblem } from '../model/purchase.ts';
import { writeTime } from '../model/timestamp.ts';
import {
  enablingProblem,
  nextPossibleAt,
  ownerProblem,
  type Topup,
  type TopupChoice,
  topupOf,
} from '../model/topup.ts';
import { readSnapshot } from '../store/accounts/read-snapshot.ts';
import { listOffers } from '../store/money/offers.ts';
import { readTopup, setTopup } from '../store/money/set-topup.ts';
import { hashTexts, type RecordStore } from '../store/script.ts';

interface TopupChange {
  /** An owner chooses among the offers and cannot name the payment method of somebody else. */
  readonly by: 'operator' | 'owner';
  readonly hasProvider: boolean;
}

/**
 * Changes the chosen fields of an automatic top-up; a choice without any leaves no entry in the audit log. Throws the reason for which
 * the account cannot have it enabled as it would then be (D82).
 */
export async function changeTopup(
  store: RecordStore,
  accountId: string,
  choice: Partial<TopupChoice>,
  { by, hasProvider }: TopupChange,
): Promise<Topup> {
  const { plan } = await readSnapshot(store, accountId);
  const before = topupOf(await readTopup(store, accountId));
  if (Object.keys(choice).length === 0) return before;
  const wanted = { ...before, ...choice };
  const refusal = by === 'owner' ? ownerProblem(before, wanted, await listOffers(store)) : null;
  if (refusal !== null) throw refuse('forbidden', refusal);
  const { pack_title, pack_total, price_cents, currency } = wanted;
  const isPriceChanged = choice.price_cents !== undefined || choice.currency !== undefined;
  const fault = isPriceChanged ? priceProblem(price_cents ?? 0, currency ?? '') : null;
  if (fault !== null) throw refuse('bad_request', fault);
  const problem = wanted.enabled ? enablingProblem(wanted, plan, hasProvider) : null;
  if (problem === 'no_provider')
    throw refuse(problem, 'No payment provider is configured: TRAWL_STRIPE_KEY is not set');
  if (problem !== null) throw refuse(problem);
  // All of the pack at once: two changes at one moment would otherwise leave the size of one and the price of the other.
  const pack = { pack_title, pack_total, price_cents, currency };
  const isPackChosen = Object.keys(pack).some((name) => name in choice);
  const written = by === 'owner' && isPackChosen ? { ...choice, ...pack } : choice;
  await setTopup(store, accountId, hashTexts(written));
  return topupOf(await readTopup(store, accountId));
}

/** The setting as the command `topup show` and the dashboard tell it. */
export function topupJson(topup: Topup) {
  const { enabled, threshold_percent, pack_title, pack_total, price_cents, currency } = topup;
  const { customer, payment_method, monthly_cap_cents, last_purchase_at } = topup;
  const next = nextPossibleAt(topup);
  return {
    enabled,
    threshold_percent,
    pack: { title: pack_title, total: pack_total, price_cents, currency },
    customer,
    payment_method,
    monthly_cap_cents,
    last_purchase_at: writeTime(last_purchase_at),
    next_possible_at: writeTime(next),
  };
}
