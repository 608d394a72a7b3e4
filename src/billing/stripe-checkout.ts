import Stripe from 'stripe';
import type { Purchase } from '../model/purchase.ts';
import type { CheckoutOrder } from './payment-provider.ts';

/** All that it takes to deliver the pack stands in the payment, so that an event alone is enough. */
export function metadataOf(
  purchase: Pick<Purchase, 'id' | 'account' | 'kind' | 'pack_title' | 'pack_total'>,
): Stripe.MetadataParam {
  const { id, account, kind, pack_title, pack_total } = purchase;
  return { trawl_purchase: id, trawl_account: account, trawl_kind: kind, pack_title, pack_total };
}

/** Returns true for the refusal of a customer that Stripe does not have: it was deleted there, or is of the other mode. */
export function isLostCustomer(error: unknown): boolean {
  const isRefusal = error instanceof Stripe.errors.StripeInvalidRequestError;
  return isRefusal && error.code === 'resource_missing' && error.param === 'customer';
}

/**
 * Opens a page of Stripe; the card that is used there is stored for top-ups. It takes cards alone, wallets with a card among them: Stripe
 * refuses to charge a stored method of another kind as a card, so the top-up would be declined each time. A customer that Stripe does not
 * have gives way to a new one.
 */
export async function startCheckout(stripe: Stripe, order: CheckoutOrder): Promise<string> {
  const { id, account, email, offer, returnUrl, paidUrl } = order;
  const about = { name: account.name, email, metadata: { trawl_account: account.id } };
  const makeCustomer = async () => (await stripe.customers.create(about, { idempotencyKey: `customer-${id}` })).id;
  const open = async (customer: string) => {
    const pages: Stripe.Checkout.SessionCreateParams = {
      customer,
      success_url: paidUrl,
      cancel_url: returnUrl,
      allowed_payment_method_types: ['card'],
    };
    const wanted = offer === null ? storing(account.id) : paying(order, offer);
    return stripe.checkout.sessions.create({ ...pages, ...wanted }, { idempotencyKey: `${id}-${customer}` });
  };
  const session = await open(order.customer ?? (await makeCustomer())).catch(async (error: unknown) => {
    if (!isLostCustomer(error)) throw error;
    return open(await makeCustomer());
  });
  if (session.url === null) throw new Error('the payment provider opened no page');
  return session.url;
}

function storing(account: string): Stripe.Checkout.SessionCreateParams {
  const setup_intent_data = { metadata: { trawl_account: account } };
  return { mode: 'setup', setup_intent_data };
}

function paying(
  { id, account }: CheckoutOrder,
  { title, credits, price_cents, currency }: NonNullable<CheckoutOrder['offer']>,
): Stripe.Checkout.SessionCreateParams {
  const terms = { id, account: account.id, kind: 'offer', pack_title: title, pack_total: credits } as const;
  const price_data = { currency, unit_amount: price_cents, product_data: { name: title } };
  return {
    mode: 'payment',
    line_items: [{ quantity: 1, price_data }],
    payment_intent_data: { metadata: metadataOf(terms), setup_future_usage: 'off_session', description: title },
  };
}
