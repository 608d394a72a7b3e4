import Stripe from 'stripe';

/** Returns the event of a provider that tells of a paid pack, which an owner chose at the checkout. */
export function paidEvent(accountId: string, purchase: string): object {
  return {
    ...{
      id: `evt_${purchase}`,
      object: 'event',
      created: 1_800_000_000,
      livemode: false,
      type: 'payment_intent.succeeded',
    },
    data: {
      object: {
        ...{ id: `pi_${purchase}`, object: 'payment_intent', amount: 990, currency: 'eur', customer: 'cus_1' },
        ...{ payment_method: 'pm_1', status: 'succeeded' },
        metadata: {
          ...{ trawl_purchase: purchase, trawl_account: accountId, trawl_kind: 'offer' },
          ...{ pack_title: 'Pack', pack_total: '50' },
        },
      },
    },
  };
}

/** Sends an event to a dashboard as the provider does, signed with a secret. */
export function sendEvent(dashboardUrl: string, secret: string, event: object): Promise<Response> {
  const payload = JSON.stringify(event);
  const header = Stripe.webhooks.generateTestHeaderString({ payload, secret });
  return fetch(`${dashboardUrl}/stripe/webhook`, {
    method: 'POST',
    headers: { 'stripe-signature': header, 'content-type': 'application/json' },
    body: payload,
  });
}
