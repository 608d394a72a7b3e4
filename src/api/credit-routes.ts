import { hash, randomUUID } from 'node:crypto';
import { failures, refuse } from '../base/errors.ts';
import { hasBrokenOff } from '../base/http-client.ts';
import type { Seal } from '../base/seal.ts';
import type { Exception } from '../base/settings/kinds.ts';
import { receiverOf } from '../model/caller-url.ts';
import type { Inspected, Inspector } from '../model/inspection-result.ts';
import { type Endpoint, isEnded, type Job } from '../model/job.ts';
import { type CreditRequest, parseFlags, parseJobId, parseRequest, requestText } from '../model/request-parameters.ts';
import { filterFields } from '../model/select-fields.ts';
import {
  type Admission,
  admit,
  chargeCall,
  type NewJob,
  type Repeat,
  releaseCall,
} from '../store/access/admit-call.ts';
import { readJob, readWebhook } from '../store/jobs/read-job.ts';
import type { RecordStore } from '../store/script.ts';
import { type Ask, enterFree, type Handler, isRefused, judgeFlags } from './ask.ts';
import { failureReply, type Reply, refusal, refusedReply, type Statuses } from './reply.ts';
import { routes } from './routes.ts';

/** What the routes that cost a credit need. */
export interface Credit {
  readonly store: RecordStore;
  readonly seal: Seal;
  readonly statuses: Statuses;
  /** Addresses that callers may name although they are not public. */
  readonly exceptions: readonly Exception[];
  readonly hasRoom: () => boolean;
  readonly inspector: Inspector;
  readonly inspectSeconds: number;
}

const graceSeconds = 15;

/** GET or POST of a download: a job, at once. */
export function startDownload(credit: Credit, endpoint: 'video' | 'audio'): Handler {
  return (ask) => {
    const asked = understand(credit, endpoint, ask);
    return asked.ok ? startJob(credit, endpoint, ask, asked) : refuseCall(credit, ask, asked.sentence);
  };
}

/** GET or POST of metadata: the answer itself, or a job with is_async (D2). */
export function tellMetadata(credit: Credit): Handler {
  return async (ask) => {
    const asked = understand(credit, 'metadata', ask);
    if (!asked.ok) return refuseCall(credit, ask, asked.sentence);
    if (asked.args.is_async === true) return startJob(credit, 'metadata', ask, asked);
    const repeat = repeatOf(credit, 'metadata', ask, () => textOf(asked));
    const id = randomUUID();
    const holdMilliseconds = (credit.inspectSeconds + graceSeconds) * 1000;
    const answer = await admit(credit.store, ask.key, {
      id,
      valid: true,
      room: credit.hasRoom(),
      repeat,
      work: { holdMilliseconds },
    });
    if (isRefused(answer)) return refusedReply(answer, credit.statuses);
    const flags = judgeFlags(ask);
    const shown = (body: Record<string, unknown>) => ('flags' in flags ? filterFields(body, flags.flags.fields) : body);
    if ('repeated' in answer) return { status: 200, body: shown(JSON.parse(answer.answer)), rates: answer.rates };
    return inspect(credit, ask, String(asked.args.query), { id, repeat, rates: answer.rates, shown });
  };
}

/** POST of a retry: a new job with the same parameters (D83). */
export function retryJob(credit: Credit): Handler {
  return async (ask) => {
    const parsed = parseJobId(String(ask.req.params.id));
    const old = parsed.ok ? await readJob(credit.store, parsed.id) : null;
    const isOwn = old !== null && old.account === ask.key.account;
    if (!isOwn || !isEnded(old.status)) {
      const entered = await enterFree(credit.store, ask, credit.statuses);
      if ('reply' in entered) return entered.reply;
      const { rates } = entered.entered;
      if (!parsed.ok) return { ...refusal('bad_request', parsed.sentence), rates };
      return { ...refusal(isOwn ? 'not_ended' : 'not_found'), rates };
    }
    const work: NewJob = { ...newJob(ask, old.endpoint, old.args), webhook: await readWebhook(credit.store, old.id) };
    const flags = parseFlags(ask.given);
    const fault = faultOf(ask) ?? (flags.ok ? null : flags.sentence);
    const repeat = repeatOf(credit, old.endpoint, ask, () => `retry ${old.id}`);
    return accept(credit, ask, work, fault, repeat);
  };
}

/** The request in the parameters, or the first thing that is wrong with it. */
function understand(credit: Credit, endpoint: Endpoint, ask: Ask) {
  const fault = faultOf(ask);
  if (fault !== null) return { ok: false, sentence: fault } as const;
  return parseRequest(endpoint, ask.given, credit.exceptions);
}

function faultOf(ask: Ask): string | null {
  const key = ask.req.headers['idempotency-key'];
  if (ask.fault !== null) return ask.fault;
  if (key === undefined || (typeof key === 'string' && /^[!-~]([ -~]{0,253}[!-~])?$/.test(key))) return null;
  return 'Bad Request: Idempotency-Key must be 1 to 255 visible characters';
}

/** The record still judges a request that is wrong: key, rate, permission and quota come before its parameters (D10). */
async function refuseCall(credit: Credit, ask: Ask, sentence: string): Promise<Reply> {
  const work = { holdMilliseconds: 0 };
  const answer = await admit(credit.store, ask.key, { id: '-', valid: false, room: true, repeat: null, work });
  if (!isRefused(answer)) throw new Error('a request with wrong parameters was admitted');
  return refusedReply(answer, credit.statuses, answer.refused === 'bad_request' ? sentence : undefined);
}

function startJob(credit: Credit, endpoint: Endpoint, ask: Ask, asked: CreditRequest): Promise<Reply> {
  const { webhook_url: url, webhook_authorization: secret } = asked;
  const authorization = secret === null ? '' : credit.seal.seal('webhook', secret);
  const webhook = url === null || endpoint === 'metadata' ? null : { url, receiver: receiverOf(url), authorization };
  const work = { ...newJob(ask, endpoint, asked.args), webhook };
  return accept(
    credit,
    ask,
    work,
    null,
    repeatOf(credit, endpoint, ask, () => textOf(asked)),
  );
}

function newJob(ask: Ask, endpoint: Endpoint, args: Job['args']): Omit<NewJob, 'webhook'> {
  return { endpoint, method: 'GET', path: routes[endpoint].paths[0], args, ip: ask.ip };
}

async function accept(
  credit: Credit,
  ask: Ask,
  work: NewJob,
  fault: string | null,
  repeat: Repeat | null,
): Promise<Reply> {
  const answer: Admission = await admit(credit.store, ask.key, {
    id: randomUUID(),
    valid: fault === null,
    room: credit.hasRoom(),
    repeat,
    work,
  });
  if (isRefused(answer)) return refusedReply(answer, credit.statuses, fault ?? undefined);
  const id = 'admitted' in answer ? answer.admitted : answer.repeated;
  const headers: Record<string, string> = { location: `/v1/jobs/${id}` };
  if ('admitted' in answer) headers['x-credits-held'] = String(answer.held);
  return { status: credit.statuses.accepted, masked: 202, body: { job_id: id }, headers, rates: answer.rates };
}

/** The Idempotency-Key of a request (D12). What is stored tells nothing of the request's parameters. */
function repeatOf(credit: Credit, endpoint: Endpoint, ask: Ask, text: () => string): Repeat | null {
  const key = ask.req.headers['idempotency-key'];
  if (typeof key !== 'string') return null;
  return { key: hash('sha256', key), request: credit.seal.sign('idempotency', `${endpoint} ${text()}`) };
}

function textOf({ args, webhook_authorization }: CreditRequest): string {
  return requestText(args, webhook_authorization);
}

interface InHand {
  readonly id: string;
  readonly repeat: Repeat | null;
  readonly rates: Reply['rates'] & object;
  readonly shown: (body: Record<string, unknown>) => object;
}

/** Asks the inspector, and charges right before the answer; a caller who has gone is not charged (D41). */
async function inspect(credit: Credit, ask: Ask, url: string, inHand: InHand): Promise<Reply | null> {
  const { store } = credit;
  const { id, repeat, rates, shown } = inHand;
  const call = { id, account: ask.key.account, endpoint: 'metadata', repeat } as const;
  const took = () => performance.now() - ask.began;
  let found: Inspected;
  try {
    found = await inspectWithin(credit, ask, url);
  } catch (error) {
    // When the release fails too, the sweep does it at the deadline of the hold.
    await releaseCall(store, call, ask.res.destroyed ? null : 500, took()).catch(() => {});
    if (ask.res.destroyed) return null;
    throw error;
  }
  if ('failure' in found) {
    await releaseCall(store, call, failures[found.failure].log, took());
    return { ...failureReply(found.failure, found.text), rates };
  }
  if (ask.res.destroyed) {
    await releaseCall(store, call, null);
    return null;
  }
  const body = { metadata: found.metadata };
  const paid = { ...call, keyId: ask.key.id, line: `${ask.req.method} ${routes.metadata.paths[0]}`, ip: ask.ip };
  const balance = await chargeCall(store, { ...paid, answer: JSON.stringify(body) }, took());
  if (balance === 'gone') return refusal('internal_error');
  return { status: 200, body: shown(body), rates, isLogged: true };
}

async function inspectWithin(credit: Credit, ask: Ask, url: string): Promise<Inspected> {
  const gone = new AbortController();
  const leave = () => gone.abort();
  ask.res.once('close', leave);
  const limit = AbortSignal.timeout(credit.inspectSeconds * 1000);
  try {
    return await credit.inspector.inspect(url, AbortSignal.any([gone.signal, limit]));
  } catch (error) {
    if (limit.aborted) return { failure: 'timeout', text: failures.timeout.sentence };
    throw hasBrokenOff(error) ? refuse('unavailable') : error;
  } finally {
    ask.res.off('close', leave);
  }
}
