import Stripe from 'stripe';
import { refuse } from '../base/errors.ts';
import { isJsonObject, membersOf } from '../base/parse-json.ts';
import type { Purchase } from '../model/purchase.ts';
import type { StoredCard } from '../store/money/card-expiry.ts';
import type { TakenPurchase } from '../store/money/take-purchase.ts';
import type { Payment, PaymentNews, PaymentProvider, ReadEvent } from './payment-provider.ts';
import { isLostCustomer, metadataOf, startCheckout } from './stripe-checkout.ts';

interface StripeOptions {
  /** Asked for each request, because the key may change. */
  readonly key: () => string;
  /** Server that stands in for Stripe's own; `null` for that. */
  readonly url: string | null;
  readonly now: () => number;
}

/** With the library's two repetitions this stays below the lease of a purchase. */
const timeoutMs = 20_000;
const maxRetries = 2;
/**
 * Stripe forgets an idempotency key after 24 hours, so a purchase is looked up before each further try: its own time tells nothing once
 * the clock was moved. The first try of an older one is no exception, because a record that was restored from a backup has
 * forgotten the tries after it.
 */
const keyLifeMs = 20 * 3_600_000;
/** Far longer than Stripe takes to carry a request out: a payment that is still open then was given up there. */
const underWayMs = 3_600_000;

export function openStripe({ key, url, now }: StripeOptions): PaymentProvider {
  let last: { readonly key: string; readonly client: Stripe } | undefined;
  const present = (): Stripe => {
    const wanted = key();
    if (last?.key !== wanted) last = { key: wanted, client: makeClient(wanted, url) };
    return last.client;
  };
  const find = async (purchase: TakenPurchase) => {
    const intent = await findIntent(present(), purchase);
    return intent && lookedUp(intent, now());
  };
  return {
    find,
    checkout: async (order) => startCheckout(present(), order),
    card: async (paymentMethod) => findCard(present(), paymentMethod),
    purchase: async (payment) => (payment === '' ? null : findPurchaseOf(present(), payment)),
    async charge(purchase) {
      const stripe = present();
      const mayBeKnown = purchase.attempt > 1 || now() - purchase.since > keyLifeMs;
      const known = mayBeKnown ? await find(purchase) : null;
      if (known !== null) return known;
      try {
        const intent = await stripe.paymentIntents.create(orderOf(purchase), { idempotencyKey: purchase.id });
        // The answer to a repeated key is as old as the first one.
        const isOpen = intent.status !== 'succeeded';
        return paymentOf(isOpen ? await stripe.paymentIntents.retrieve(intent.id) : intent);
      } catch (error) {
        return declinedBy(error, async () => find(purchase));
      }
    },
  };
}

/** Asks Stripe for one payment, which needs no other right than purchases do, and changes nothing; returns why it refuses the key, or `null`. */
export async function tryStripe(key: string, url: string | null): Promise<string | null> {
  try {
    await makeClient(key, url).paymentIntents.list({ limit: 1 }, { maxNetworkRetries: 0, timeout: timeoutMs });
    return null;
  } catch (error) {
    if (error instanceof Stripe.errors.StripeAuthenticationError) return 'the key is wrong or has ended';
    if (error instanceof Stripe.errors.StripePermissionError) return error.message.replaceAll(key, '***');
    // The library says no more than that the connection failed; `detail` says why.
    const isAway = error instanceof Stripe.errors.StripeConnectionError && error.detail instanceof Error;
    throw isAway ? error.detail : error;
  }
}

interface EventOptions {
  /** `null` where nothing can be bought; earlier purchases are still told of. */
  readonly key: () => string | null;
  readonly secret: () => string;
}

/** Returns what reads Stripe's events with the secret that signs them. Those of the mode that the key is not of are none of ours. */
export function readStripeEvents({ key, secret }: EventOptions): ReadEvent {
  return (body, signature) => {
    const event = verify(body, signature, secret());
    if (event === null) return 'no_object';
    const own = key();
    // A stand-in may leave `livemode` out.
    const isOwn = own === null || Boolean(event.livemode) === isLive(own);
    const news = isOwn ? newsOf(event) : null;
    return news && { id: event.id, news };
  };
}

/** The client asks only its host, whatever the environment says of proxies; it sends no measurements. */
function makeClient(key: string, url: string | null): Stripe {
  const { hostname, port, protocol } = new URL(url ?? 'https://api.stripe.com');
  const isPlain = protocol === 'http:';
  return new Stripe(key, {
    host: hostname,
    port: port || (isPlain ? 80 : 443),
    protocol: isPlain ? 'http' : 'https',
    timeout: timeoutMs,
    maxNetworkRetries: maxRetries,
    telemetry: false,
  });
}

/** Returns true for a key that takes real money. */
export function isLive(key: string): boolean {
  return /^[sr]k_live_/.test(key);
}

/** Returns the event that Stripe has signed, `null` for one without its object: an endpoint may be told to get such "thin" ones. */
function verify(body: Buffer, signature: string, secret: string): Stripe.Event | null {
  try {
    const event = Stripe.webhooks.constructEvent(body, signature, secret);
    return isJsonObject(membersOf(membersOf(event).data).object) ? event : null;
  } catch (error) {
    const isForged = error instanceof Stripe.errors.StripeSignatureVerificationError;
    if (isForged) throw refuse('bad_request', 'The event is not signed by the payment provider');
    // The library refuses a thin one, behind its signature.
    return null;
  }
}

/** Every parameter stands by itself: the compiler lets one pass in a spread that this version of the API does not have any more. */
function orderOf(purchase: TakenPurchase): Stripe.PaymentIntentCreateParams {
  const { price_cents, currency, customer, payment_method, pack_title } = purchase;
  return {
    amount: price_cents,
    currency,
    customer,
    payment_method,
    description: pack_title,
    off_session: true,
    confirm: true,
    allowed_payment_method_types: ['card'],
    metadata: metadataOf(purchase),
  };
}

/** A card is taken until the end of its month. */
async function findCard(stripe: Stripe, paymentMethod: string): Promise<StoredCard | null> {
  const found = await stripe.paymentMethods.retrieve(paymentMethod).catch(nullIfAbsent);
  if (!found?.card) return null;
  const { brand, last4, exp_year, exp_month } = found.card;
  return { label: `${brand} ${last4}`, expires: Date.UTC(exp_year, exp_month, 1) };
}

async function findPurchaseOf(stripe: Stripe, payment: string): Promise<Purchase | null> {
  const intent = await stripe.paymentIntents.retrieve(payment).catch(nullIfAbsent);
  return intent && purchaseOf(intent.metadata, termsOf(intent));
}

/** Returns `null` for the error of an object that Stripe does not have; throws every other one. */
function nullIfAbsent(error: unknown): null {
  if (error instanceof Stripe.errors.StripeInvalidRequestError && error.statusCode === 404) return null;
  throw error;
}

function idOf(one: string | { readonly id: string } | null | undefined): string {
  return typeof one === 'string' ? one : (one?.id ?? '');
}

/**
 * Looks through the payments of the customer, newest first: unlike Stripe's search, a list has the newest, too. A customer that Stripe does
 * not have can be charged by no further try either, so such a purchase ends.
 */
async function findIntent(stripe: Stripe, purchase: TakenPurchase): Promise<Stripe.PaymentIntent | null> {
  const listed = stripe.paymentIntents.list({ customer: purchase.customer, limit: 100 });
  try {
    for await (const intent of listed) if (intent.metadata.trawl_purchase === purchase.id) return intent;
  } catch (error) {
    if (!isLostCustomer(error)) throw error;
  }
  return null;
}

/** Reads a payment whose request may still be carried out by Stripe: its answer was lost, or is not there yet. */
function lookedUp(intent: Stripe.PaymentIntent, now: number): Payment {
  const { id, status, last_payment_error, created } = intent;
  const isOpen = status === 'requires_confirmation' || status === 'requires_payment_method';
  const isUnderWay = isOpen && !last_payment_error && now - created * 1000 < underWayMs;
  return isUnderWay ? { state: 'pending', payment: id } : paymentOf(intent);
}

/** Reads a payment whose request was carried out. */
function paymentOf({ id, status, last_payment_error }: Stripe.PaymentIntent): Payment {
  if (status === 'succeeded') return { state: 'paid', payment: id };
  if (status === 'processing') return { state: 'pending', payment: id };
  // Nobody is there to confirm it.
  return {
    state: 'declined',
    payment: id,
    reason: last_payment_error?.message ?? 'The payment needs your confirmation.',
  };
}

/** Codes of errors about how we ask, not about what is to be paid: an owner could do nothing about them. */
const faultOfOurs = /^parameter_unknown$|_no_longer_supported$/;

/** Returns the decline that an error tells; throws every other error, because the purchase may have been charged. */
async function declinedBy(error: unknown, find: () => Promise<Payment | null>): Promise<Payment> {
  if (error instanceof Stripe.errors.StripeCardError)
    return { state: 'declined', payment: idOf(error.payment_intent), reason: error.message };
  if (error instanceof Stripe.errors.StripeIdempotencyError) {
    const known = await find();
    if (known !== null) return known;
  }
  const isRefused =
    error instanceof Stripe.errors.StripeInvalidRequestError && [400, 404].includes(error.statusCode ?? 0);
  if (isRefused && !faultOfOurs.test(error.code ?? ''))
    return { state: 'declined', payment: '', reason: error.message };
  throw error;
}

function newsOf(event: Stripe.Event): PaymentNews | null {
  const at = event.created * 1000;
  if (event.type === 'charge.dispute.created' || event.type === 'charge.dispute.funds_withdrawn') {
    const { status, payment_intent } = event.data.object;
    // A bank that only asks about a payment has withdrawn nothing.
    return /^warning_/.test(status) ? null : { kind: 'disputed', payment: idOf(payment_intent) };
  }
  if (event.type === 'charge.refunded') {
    const { metadata, amount, amount_refunded, currency, payment_intent, customer } = event.data.object;
    const purchase = purchaseOf(metadata, { amount, currency, customer: idOf(customer), method: '' });
    // Of a refund in part the operator decides what it is worth.
    if (purchase === null || amount_refunded < amount) return null;
    return { kind: 'refunded', purchase, payment: idOf(payment_intent) };
  }
  if (event.type === 'setup_intent.succeeded') {
    const { metadata, customer, payment_method } = event.data.object;
    const account = metadata?.trawl_account;
    if (!account) return null;
    return { kind: 'stored', account, customer: idOf(customer), payment_method: idOf(payment_method), at };
  }
  if (event.type !== 'payment_intent.succeeded' && event.type !== 'payment_intent.payment_failed') return null;
  const { id, metadata, last_payment_error } = event.data.object;
  const purchase = purchaseOf(metadata, termsOf(event.data.object));
  if (purchase === null) return null;
  if (event.type === 'payment_intent.succeeded') return { kind: 'paid', purchase, payment: id, at };
  // At the checkout people try another card.
  if (purchase.kind === 'offer') return null;
  return { kind: 'declined', purchase, payment: id, reason: last_payment_error?.message ?? 'The payment failed.' };
}

type Terms = ReturnType<typeof termsOf>;

function termsOf({ amount, currency, customer, payment_method }: Stripe.PaymentIntent) {
  return { amount, currency, customer: idOf(customer), method: idOf(payment_method) };
}

/** Reads a purchase from what `metadataOf` wrote; `null` for a payment that is not ours. */
function purchaseOf(
  metadata: Stripe.Metadata | null | undefined,
  { amount, currency, customer, method }: Terms,
): Purchase | null {
  const { trawl_purchase: id, trawl_account: account, trawl_kind: kind, pack_title, pack_total } = metadata ?? {};
  if (!id || !account || !pack_title || !(Number(pack_total) >= 1)) return null;
  return {
    ...{ id, account, kind: kind === 'offer' ? 'offer' : 'topup', pack_title, pack_total: Number(pack_total) },
    ...{ price_cents: amount, currency, customer, payment_method: method },
  };
}
