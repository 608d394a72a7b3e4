import { randomBytes } from 'node:crypto';
import { fewAtATime } from '../api/account-turns.ts';
import type { ApiReply } from '../api/reply.ts';
import { refuse } from '../base/errors.ts';
import type { CheckoutOrder, PaymentProvider } from '../billing/payment-provider.ts';
import { readAccount } from '../store/accounts/read-accounts.ts';
import { listOffers } from '../store/money/offers.ts';
import { readTopup } from '../store/money/set-topup.ts';
import type { RecordStore } from '../store/script.ts';
import { changeRoute, type DashboardCall, type DashboardRoute, readRoute } from './dashboard-app.ts';

const noPage = 'The payment provider opens no page now, and nothing was paid: try again later';
const checkOut = fewAtATime(1, 'A checkout of this account is being opened: wait for it');

interface CheckoutParts {
  readonly store: RecordStore;
  /** `null` where the operator has configured none. */
  readonly provider: Pick<PaymentProvider, 'checkout'> | null;
  readonly dashboardUrl: () => string;
}

/** Routes of the offers, and of the way to the provider's page, where they pay or store a card. */
export function checkoutRoutes(parts: CheckoutParts): DashboardRoute[] {
  return [
    readRoute('/api/offers', async () => ({ status: 200, body: { offers: await listOffers(parts.store) } })),
    changeRoute('POST', '/api/checkout', 'money', (call) => checkOut(call.accountId, () => openCheckout(parts, call))),
  ];
}

async function openCheckout(
  { store, provider, dashboardUrl }: CheckoutParts,
  { accountId, given, signedIn }: DashboardCall,
): Promise<ApiReply> {
  if (provider === null) throw refuse('no_provider');
  const offers = await listOffers(store);
  // Without a name of an offer the page stores a card.
  const offer = given.offer === undefined ? null : offers.find(({ name }) => name === given.offer);
  if (offer === undefined) throw refuse('not_found', 'There is no such offer');
  const { customer } = await readTopup(store, accountId);
  const { name } = await readAccount(store, accountId);
  const visit = randomBytes(12).toString('hex');
  const billing = `${dashboardUrl()}/billing`;
  const order: CheckoutOrder = {
    id: `${accountId}-${visit}`,
    account: { id: accountId, name },
    email: signedIn.person.email,
    customer: customer || null,
    offer,
    returnUrl: billing,
    // The page waits for this purchase, of which the provider tells a moment later.
    paidUrl: offer === null ? billing : `${billing}?bought=${visit}`,
  };
  const url = await provider.checkout(order).catch((cause: unknown) => {
    throw Object.assign(refuse('internal_error', noPage), { cause });
  });
  return { status: 200, body: { url } };
}
