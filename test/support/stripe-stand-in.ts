import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { unknownParameters } from './stripe-parameters.ts';

/** Fault of the next request that takes money: lost before it was done, done but its answer lost, or answered with this status. */
type Fault = 'before' | 'after' | 500 | 429 | 'unknown parameter' | 'parameter of the past';

interface Intent {
  readonly id: string;
  readonly object: 'payment_intent';
  readonly amount: number;
  readonly currency: string;
  readonly customer: string;
  readonly payment_method: string;
  readonly metadata: Record<string, string>;
  readonly created: number;
  status: string;
  last_payment_error: object | null;
}

interface Visit {
  readonly id: string;
  readonly path: string;
  readonly form: Readonly<Record<string, string>>;
}

interface Kept {
  readonly shape: string;
  answer: { readonly status: number; readonly body: object } | null;
}

/** Declines by the names of Stripe's own test payment methods, so that a test reads as against the real one. */
const declines: Readonly<Record<string, string>> = {
  pm_card_chargeDeclined: 'card_declined',
  pm_card_authenticationRequired: 'authentication_required',
};

/** State in which a payment with such a method stays until it is finished. */
const openStates: Readonly<Record<string, string>> = {
  pm_slow_bank: 'processing',
  pm_not_confirmed: 'requires_confirmation',
  pm_not_attached: 'requires_payment_method',
  pm_needs_action: 'requires_action',
};

export interface StripeStandIn {
  readonly url: string;
  /** Requests for customers and pages of the checkout. */
  readonly visits: readonly Visit[];
  /** Payments that took money, oldest first. */
  readonly charges: readonly Intent[];
  /** Idempotency keys of all requests that asked for money. */
  readonly asked: readonly string[];
  readonly faults: Fault[];
  /** Stored cards by the id of their payment method, with month and year of their end. */
  readonly cards: Map<string, { exp_month: number; exp_year: number }>;
  /** Customers that do not exist: a request that names one is refused. */
  readonly lostCustomers: Set<string>;
  /** Keys of the API; with any of these, every other one is refused. */
  readonly keys: Set<string>;
  /** Keys that were refused. */
  readonly refusedKeys: string[];
  /** Forgets the idempotency keys, as Stripe does after a day. */
  forgetKeys(): void;
  /** Lets a payment that is not carried out yet succeed. */
  finish(id: string): void;
  stop(): Promise<void>;
}

/**
 * Starts a server that keeps what an off-session charge needs of Stripe: payments, idempotency keys and lists. As Stripe does, it refuses
 * a parameter that the version of the API does not have.
 */
export async function startStripe(): Promise<StripeStandIn> {
  const [intents, keys] = [new Map<string, Intent>(), new Map<string, Kept>()];
  const [visits, cards]: [Visit[], StripeStandIn['cards']] = [[], new Map()];
  const [charges, asked, faults]: [Intent[], string[], Fault[]] = [[], [], []];
  const gate = { keys: new Set<string>(), refusedKeys: [], lostCustomers: new Set<string>() };

  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const text = (await buffer(request)).toString();
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://stripe');
    const say = (status: number, body: object, headers = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
    const id = pathname.split('/')[3];
    if (request.method === 'GET' && id !== undefined) {
      const isCard = pathname.startsWith('/v1/payment_methods/');
      const found = isCard ? findCard(cards, id) : findIntent(intents, id);
      return say(found.status, found.body);
    }
    if (gate.lostCustomers.has(customerOf(searchParams, text))) return say(400, refuseCustomer().body);
    if (request.method === 'GET') {
      const data = listIntents(intents, searchParams);
      return say(200, { object: 'list', url: '/v1/payment_intents', has_more: false, data });
    }
    const [unknown] = unknownParameters(pathname, new URLSearchParams(text));
    if (unknown !== undefined) return say(400, refuseParameter(unknown).body);
    if (!pathname.startsWith('/v1/payment_intents')) {
      const made = { id: `made_${randomUUID()}`, url: 'https://checkout.example/pay' };
      visits.push({ id: made.id, path: pathname, form: Object.fromEntries(new URLSearchParams(text)) });
      return say(200, made);
    }
    const key = String(request.headers['idempotency-key'] ?? randomUUID());
    asked.push(key);
    const fault = faults.shift();
    if (fault === 'before') return request.socket.destroy();
    const refused = refusalOf(fault);
    if (refused !== null) return say(refused.status, refused.body);
    const shape = createHash('sha256').update(text).digest('hex');
    const kept: Kept = keys.get(key) ?? { shape, answer: null };
    keys.set(key, kept);
    if (kept.shape !== shape) return say(400, { error: { type: 'idempotency_error', message: 'Other parameters' } });
    kept.answer ??= pay(new URLSearchParams(text), intents, charges);
    if (fault === 'after') return request.socket.destroy();
    return say(kept.answer.status, kept.answer.body);
  };

  const server = createServer(
    (request, response) => void (takesKey(gate, request, response) && answer(request, response)),
  );
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const { port } = server.address() as AddressInfo;
  return {
    ...{ url: `http://127.0.0.1:${port}`, visits, charges, asked, faults, cards, ...gate },
    forgetKeys: () => keys.clear(),
    finish: (id) => finish(id, intents, charges),
    stop: () =>
      new Promise((stopped) => {
        server.close(() => stopped());
        server.closeAllConnections();
      }),
  };
}

function finish(id: string, intents: ReadonlyMap<string, Intent>, charges: Intent[]): void {
  const intent = intents.get(id);
  if (!intent) throw new Error(`there is no payment ${id}`);
  intent.status = 'succeeded';
  charges.push(intent);
}

/** Takes the money, or says why not. */
function pay(form: URLSearchParams, intents: Map<string, Intent>, charges: Intent[]): { status: number; body: object } {
  const method = form.get('payment_method') ?? '';
  const intent = makeIntent(form);
  intents.set(intent.id, intent);
  if (method === 'pm_gone')
    return refuse(404, {
      type: 'invalid_request_error',
      code: 'resource_missing',
      message: `No such PaymentMethod: '${method}'`,
    });
  const code = declines[method];
  if (code !== undefined) {
    intent.status = 'requires_payment_method';
    intent.last_payment_error = { code, message: 'Your card was declined.' };
    return refuse(402, { type: 'card_error', code, message: 'Your card was declined.', payment_intent: intent });
  }
  const open = openStates[method];
  if (open !== undefined) intent.status = open;
  else charges.push(intent);
  return { status: 200, body: { ...intent } };
}

function listIntents(intents: ReadonlyMap<string, Intent>, query: URLSearchParams): Intent[] {
  const since = Number(query.get('created[gte]') ?? 0);
  const isListed = ({ customer, created }: Intent) => customer === query.get('customer') && created >= since;
  return [...intents.values()].filter(isListed).reverse();
}

function findIntent(intents: ReadonlyMap<string, Intent>, id: string): { status: number; body: object } {
  const intent = intents.get(id);
  if (intent !== undefined) return { status: 200, body: intent };
  return refuse(404, { type: 'invalid_request_error', message: 'No such payment_intent' });
}

function findCard(cards: StripeStandIn['cards'], id: string): { status: number; body: object } {
  const card = cards.get(id);
  if (card === undefined) return refuse(404, { type: 'invalid_request_error', message: 'No such PaymentMethod' });
  return { status: 200, body: { id, object: 'payment_method', card: { brand: 'visa', last4: '4242', ...card } } };
}

function makeIntent(form: URLSearchParams): Intent {
  const metadata = [...form].flatMap(([name, value]) => {
    const found = /^metadata\[(.+)]$/.exec(name);
    return found ? [[found[1], value]] : [];
  });
  return {
    id: `pi_${randomUUID().replaceAll('-', '')}`,
    object: 'payment_intent',
    amount: Number(form.get('amount')),
    currency: form.get('currency') ?? '',
    customer: form.get('customer') ?? '',
    payment_method: form.get('payment_method') ?? '',
    metadata: Object.fromEntries(metadata),
    created: Math.floor(Date.now() / 1000),
    status: 'succeeded',
    last_payment_error: null,
  };
}

/** Returns true for a key of the API that was given, or any when none was; answers every other one. */
function takesKey(
  { keys, refusedKeys }: { readonly keys: ReadonlySet<string>; readonly refusedKeys: string[] },
  { headers }: IncomingMessage,
  response: ServerResponse,
): boolean {
  const key = String(headers.authorization).replace('Bearer ', '');
  if (keys.size === 0 || keys.has(key)) return true;
  refusedKeys.push(key);
  const { status, body } = refuse(401, { type: 'invalid_request_error', message: 'Invalid API Key provided' });
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  return false;
}

function refusalOf(fault: Fault | undefined): { status: number; body: object } | null {
  if (fault === 500 || fault === 429) return refuse(fault, { type: 'api_error', message: 'An error' });
  if (fault === 'unknown parameter') return refuseParameter('confirm');
  if (fault === 'parameter of the past') return refuseParameter('confirm', 'confirm_no_longer_supported');
  return null;
}

function refuseParameter(name: string, code = 'parameter_unknown'): { status: number; body: object } {
  return refuse(400, { type: 'invalid_request_error', code, message: `Received unknown parameter: ${name}` });
}

function customerOf(query: URLSearchParams, form: string): string {
  return query.get('customer') ?? new URLSearchParams(form).get('customer') ?? '';
}

function refuseCustomer(): { status: number; body: object } {
  const missing = { code: 'resource_missing', param: 'customer', message: 'No such customer' };
  return refuse(400, { type: 'invalid_request_error', ...missing });
}

function refuse(status: number, error: object): { status: number; body: object } {
  return { status, body: { error } };
}
