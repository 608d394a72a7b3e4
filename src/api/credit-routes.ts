import { hash, randomUUID } from 'node:crypto';
import { failures, isRefusal, type Refusal, refuse } from '../base/errors.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Seal } from '../base/seal.ts';
import type { AddressException } from '../base/settings/kinds.ts';
import type { InspectionResult, Inspector } from '../model/inspection-result.ts';
import { type Endpoint, isEnded, type Job } from '../model/job.ts';
import { receiverOf } from '../model/public-address.ts';
import {
  type CreditRequest,
  idempotencyParameters,
  parseFlags,
  parseJobId,
  parseRequest,
  requestText,
} from '../model/request-parameters.ts';
import { filterFields } from '../model/select-fields.ts';
import { writeTraceparent } from '../model/trace-context.ts';
import { admitCall, type NewJob, type Repeat } from '../store/access/admit-call.ts';
import { chargeCall, type HeldCall } from '../store/access/charge-call.ts';
import { admitJoined } from '../store/access/join-calls.ts';
import { refuseCall, releaseCall } from '../store/access/release-call.ts';
import { readStored, type StoredJob } from '../store/jobs/read-job.ts';
import type { AdmissionGate } from '../store/redis/admission-gate.ts';
import type { RecordStore } from '../store/script.ts';
import type { KeyedCall, KeyedHandler } from './api-call.ts';
import { askWithin, type InspectionLimits } from './ask-inspector.ts';
import { requireFlags } from './free-call.ts';
import { type ApiReply, acceptedReply, errorReply, failureReply, requireAllowed } from './reply.ts';
import { headerOf } from './request-syntax.ts';
import { routes } from './routes.ts';

export interface CreditRoutes extends InspectionLimits {
  readonly store: RecordStore;
  readonly seal: Seal;
  /** Status of an accepted call (D1). */
  readonly asyncStatus: number;
  /** Path of TRAWL_PUBLIC_URL, which a proxy takes off; '' for none. */
  readonly basePath: string;
  /** Addresses that callers may name although they are not public. */
  readonly exceptions: readonly AddressException[];
  readonly admissions: Pick<AdmissionGate, 'isOpen'>;
  readonly inspector: Inspector;
  readonly metrics: Pick<Metrics, 'charges_total' | 'overdrafts_total'>;
}

/** The hold of a synchronous call outlives the call's time limit by this much, so that its charge still finds it. */
const graceSeconds = 15;
const badIdempotencyKey = 'Bad Request: Idempotency-Key must be 1 to 255 visible characters';
const lostParameters =
  'Bad Request: the record of this job is damaged, so its parameters cannot be read: start a new job';
const lostAuthorization =
  'Bad Request: the webhook_authorization of this job cannot be read since the secret of the service was changed: start a new job that names it';

/** GET or POST of a download: a job, at once. */
export function startDownload(credit: CreditRoutes, endpoint: 'video' | 'audio'): KeyedHandler {
  return async (call) => startJob(credit, endpoint, call, await readRequest(credit, endpoint, call));
}

/** GET or POST of metadata: the answer itself, or a job with is_async (D2). */
export function getMetadata(credit: CreditRoutes): KeyedHandler {
  return async (call) => {
    const request = await readRequest(credit, 'metadata', call);
    if (request.args.is_async === true) return startJob(credit, 'metadata', call, request);
    const repeat = repeatOf(credit, 'metadata', call, () => textOf(request));
    const held = { id: randomUUID(), accountId: call.key.accountId, endpoint: 'metadata', repeat } as const;
    const work = { holdMs: holdMsOf(credit) };
    const wanted = { id: held.id, valid: true, isOpen: credit.admissions.isOpen, repeat, work };
    const admitted = requireAllowed(call, await admitCall(credit.store, call.key, wanted));
    if ('repeated' in admitted) return metadataReply(call, JSON.parse(admitted.answer));
    return inspect(credit, call, held, String(request.args.query));
  };
}

function holdMsOf({ inspectSeconds }: CreditRoutes): number {
  return (inspectSeconds + graceSeconds) * 1000;
}

/** POST of a retry: a new job with the same parameters (D83). */
export function startRetry(credit: CreditRoutes): KeyedHandler {
  return async (call) => {
    const [flags, id] = [parseFlags(call.given), parseJobId(String(call.req.params.id))];
    const fault = faultOf(call) ?? (flags.ok ? null : flags.sentence) ?? (id.ok ? null : id.sentence);
    const repeat = repeatOf(credit, 'retry', call, () => (fault === null && id.ok ? id.jobId : `wrong: ${fault}`));
    const old = id.ok ? await findOwn(credit, call, id.jobId) : null;
    if (fault !== null || old === null || !isEnded(old.job.status)) {
      const code = fault !== null ? 'bad_request' : old === null ? 'not_found' : 'not_ended';
      return refuseRetry(credit, call, repeat, refuse(code, fault ?? undefined));
    }
    const webhook = sealAnew(credit, old);
    if (typeof webhook === 'string') return refuseRetry(credit, call, repeat, refuse('bad_request', webhook));
    const made = newJob(call, old.job.endpoint, old.job.args, webhook);
    // Its line in the request log names the endpoint of the job, whose first method is not kept.
    return accept(credit, call, { ...made, method: 'GET' }, repeat);
  };
}

async function findOwn({ store }: CreditRoutes, { key }: KeyedCall, jobId: string) {
  const found = await readStored(store, jobId);
  return found?.job.account === key.accountId ? found : null;
}

/**
 * Refuses a retry after the record has checked key, rate, permission and quota (D10). A repeated one gets its job, whose
 * first job may have expired since.
 */
async function refuseRetry(credit: CreditRoutes, call: KeyedCall, repeat: Repeat | null, why: Refusal) {
  const wanted = { id: '-', valid: false, isOpen: true, repeat, work: { holdMs: 0 } };
  const judged = await admitCall(credit.store, call.key, wanted);
  const isWrong = 'refused' in judged && judged.refused === 'bad_request';
  const answer = requireAllowed(call, isWrong ? { rates: judged.rates } : judged);
  if ('repeated' in answer) return acceptedReply('job', credit, answer);
  throw why;
}

/** Returns the request in the parameters. For a wrong one, the record still checks key, rate, permission and quota first (D10). */
async function readRequest(credit: CreditRoutes, endpoint: Endpoint, call: KeyedCall): Promise<CreditRequest> {
  const fault = faultOf(call);
  const request =
    fault === null ? parseRequest(endpoint, call.given, credit.exceptions) : ({ ok: false, sentence: fault } as const);
  if (request.ok) return request;
  // An Idempotency-Key in use was used with other parameters, which comes before these (D10).
  const repeat = repeatOf(credit, endpoint, call, () => `wrong: ${request.sentence}`);
  const wanted = { id: '-', valid: false, isOpen: true, repeat, work: { holdMs: 0 } };
  requireAllowed(call, await admitCall(credit.store, call.key, wanted), request.sentence);
  throw new Error('a request with wrong parameters was admitted');
}

type CallWithRepeat = Pick<KeyedCall, 'req' | 'idempotencyKey'>;

/** Returns what is wrong with the syntax of a call, or with its Idempotency-Key. */
export function faultOf(call: CallWithRepeat & Pick<KeyedCall, 'fault'>): string | null {
  const key = idempotencyKeyOf(call);
  if (call.fault !== null) return call.fault;
  const isGood = key === undefined || idempotencyParameters.idempotency_key.read(key, []).ok;
  return isGood ? null : badIdempotencyKey;
}

export function idempotencyKeyOf({
  req,
  idempotencyKey = headerOf(req, 'idempotency-key'),
}: CallWithRepeat): string | undefined {
  return idempotencyKey;
}

function startJob(
  credit: CreditRoutes,
  endpoint: Endpoint,
  call: KeyedCall,
  request: CreditRequest,
): Promise<ApiReply> {
  const work = newJob(call, endpoint, request.args, endpoint === 'metadata' ? null : webhookOf(credit, call, request));
  return accept(
    credit,
    call,
    work,
    repeatOf(credit, endpoint, call, () => textOf(request)),
  );
}

/** Returns the webhook that a request names, its authorization sealed. */
export function webhookOf(
  { seal }: Pick<CreditRoutes, 'seal'>,
  { key }: KeyedCall,
  { webhook_url: url, webhook_authorization: secret }: Pick<CreditRequest, 'webhook_url' | 'webhook_authorization'>,
): NewJob['webhook'] {
  if (url === null) return null;
  const authorization = secret === null ? '' : seal.seal('webhook', secret);
  return { url, receiver: receiverOf(key.accountId, url), authorization };
}

/** Returns the webhook of an earlier job, its authorization sealed with the present secret; a sentence where it cannot start again. */
function sealAnew({ seal }: Pick<CreditRoutes, 'seal'>, { job, webhook }: StoredJob): NewJob['webhook'] | string {
  if (job.unreadable) return lostParameters;
  if (!webhook?.authorization) return webhook;
  const plain = seal.open('webhook', webhook.authorization);
  return plain === null ? lostAuthorization : { ...webhook, authorization: seal.seal('webhook', plain) };
}

/** Returns the job that a call of its endpoint makes; the line of its billing names the call's method. */
export function newJob(call: KeyedCall, endpoint: Endpoint, args: Job['args'], webhook: NewJob['webhook']): NewJob {
  const { req, caller } = call;
  const work = { endpoint, method: req.method, path: routes[endpoint].paths[0], args, ip: caller.ip, webhook };
  return call.trace ? { ...work, trace: writeTraceparent(call.trace) } : work;
}

async function accept(credit: CreditRoutes, call: KeyedCall, work: NewJob, repeat: Repeat | null): Promise<ApiReply> {
  const wanted = { id: randomUUID(), valid: true, isOpen: credit.admissions.isOpen, repeat, work };
  const answer = requireAllowed(call, await admitJoined(credit.store, call.key, wanted));
  return acceptedReply('job', credit, answer);
}

/** Returns the hashed Idempotency-Key of a call (D12); nothing of the call's parameters can be read from it. */
export function repeatOf(
  { seal }: Pick<CreditRoutes, 'seal'>,
  endpoint: Endpoint | 'batch' | 'retry',
  call: CallWithRepeat,
  write: () => string,
): Repeat | null {
  const key = idempotencyKeyOf(call);
  if (key === undefined) return null;
  const text = `${endpoint} ${write()}`;
  const otherwise = seal.signOtherwise('idempotency', text);
  return { key: hash('sha256', key), request: seal.sign('idempotency', text), otherwise };
}

function textOf({ args, webhook_authorization }: CreditRequest): string {
  return requestText(args, webhook_authorization);
}

/** Asks the inspector, and charges right before the answer; a caller who has gone is not charged (D41). */
async function inspect(credit: CreditRoutes, call: KeyedCall, held: HeldCall, url: string): Promise<ApiReply | null> {
  const { store } = credit;
  const { req, res, key, caller } = call;
  const tookMs = () => performance.now() - call.began;
  let found: InspectionResult;
  try {
    found = await askWithin(credit, call, (gone) => credit.inspector.inspect(url, key.accountId, gone));
  } catch (error) {
    // A call that was refused counts in no statistics and in no quota.
    const isRefused = isRefusal(error, 'rate_limited');
    const release = isRefused
      ? refuseCall(store, { ...held, hash: key.hash, holdMs: holdMsOf(credit) })
      : releaseCall(store, held, res.destroyed ? null : 500, tookMs());
    // When the release fails too, the sweep does it at the deadline of the hold.
    await release.catch(() => {});
    if (res.destroyed) return null;
    throw error;
  }
  if ('failure' in found) {
    await releaseCall(store, held, failures[found.failure.code].log, tookMs());
    return failureReply(found.failure.code, found.failure.text);
  }
  if (res.destroyed) {
    await releaseCall(store, held, null);
    return null;
  }
  const body = { metadata: found.metadata };
  const line = { keyId: key.keyId, line: `${req.method} ${routes.metadata.paths[0]}`, ip: caller.ip };
  const charged = await chargeCall(store, { ...held, ...line, answer: JSON.stringify(body) }, tookMs());
  if (charged.refused) return errorReply(refuse('internal_error'));
  credit.metrics.charges_total.inc({ endpoint: 'metadata', balance: charged.balance });
  if (charged.balance === 'overdraft') credit.metrics.overdrafts_total.inc();
  return { ...metadataReply(call, body), isLogged: true };
}

function metadataReply(call: KeyedCall, body: { readonly metadata: unknown }): ApiReply {
  return { status: 200, body: filterFields(body, requireFlags(call).fields) };
}
