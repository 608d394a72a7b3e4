import type { Readable } from 'node:stream';
import { retry } from '../base/backoff.ts';
import { type HttpAnswer, type HttpRequest, sendRequest } from '../base/http-client.ts';
import { parseJson } from '../base/parse-json.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { type AttemptProgress, readPermit, readSpec, type UploadRequest } from '../model/attempt-protocol.ts';
import type { StageTime } from '../model/attempt-stages.ts';
import type { Outcome } from '../model/outcome.ts';

/** Verdict of a worker, with the stages of its attempt. */
export type ToldOutcome = Outcome & { readonly stages: readonly StageTime[] };

/** 410: the job has ended or goes on in another attempt. */
export class AttemptOver extends Error {}

/** The gateway refused, or its answer does not fit the protocol: a retry changes nothing. */
export class GatewayRefusal extends Error {}

/** 401: the gateway does not know the token. */
export class UnknownToken extends GatewayRefusal {}

const callTimeoutMs = 10_000;
/** For a permit the gateway asks S3 several times, each for up to 10 s, and sends signs of life meanwhile. */
const permitTimeoutMs = 60_000;
/** A permit names up to 128 signed URLs. */
const maxAnswerBytes = 2 ** 20;
/** A connection without traffic for so long is given up. */
const idleMs = 30_000;
const backoff = { firstMs: 100, maxMs: 5_000 };

export function send(request: Omit<HttpRequest, 'idleMs' | 'maxAnswerBytes'>): Promise<HttpAnswer> {
  return sendRequest({ ...request, idleMs, maxAnswerBytes });
}

/** Calls to the gateway of the controller; each is retried until `patienceSeconds` are over, unless it says otherwise. */
export type GatewayClient = ReturnType<typeof openGatewayClient>;

/** The token is read anew for each call because a cluster rotates it; `patienceSeconds` limits one call with its retries. */
export function openGatewayClient(
  address: ServerAddress,
  token: () => string,
  patienceSeconds: number,
  signal: AbortSignal,
) {
  const callOnce = async (method: 'GET' | 'POST', path: string, json?: unknown, timeoutMs = callTimeoutMs) => {
    const body = json === undefined ? '' : JSON.stringify(json);
    const headers = {
      authorization: `Bearer ${token()}`,
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
    };
    const limited = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    return judge(await send({ to: { server: address, path }, method, headers, body, signal: limited }));
  };
  const call = (...request: Parameters<typeof callOnce>) => {
    return repeat(() => callOnce(...request), patienceSeconds, signal);
  };
  return {
    readSpec: async () => readSpec(await call('GET', '/v1/attempt')) ?? refuse('The order makes no sense'),
    /** Not retried: the next report follows anyway. */
    reportProgress: async (progress: AttemptProgress) => {
      await callOnce('POST', '/v1/attempt/progress', progress);
    },
    /** Not retried: each try of an upload asks anew. */
    askPermit: async (upload: UploadRequest) => {
      const permit = await callOnce('POST', '/v1/attempt/permit', upload, permitTimeoutMs);
      return readPermit(permit) ?? refuse('The permit makes no sense');
    },
    /** Not retried: the stream can be read only once. */
    putObject: async (body: Readable, { bytes, content_type, sha256, ext }: Omit<UploadRequest, 'parts'>) => {
      const headers = {
        authorization: `Bearer ${token()}`,
        'content-type': content_type,
        'content-length': String(bytes),
        'x-sha256': sha256,
        'x-ext': ext,
      };
      judge(await send({ to: { server: address, path: '/v1/attempt/object' }, method: 'PUT', headers, body, signal }));
    },
    sendVerdict: async (outcome: ToldOutcome) => {
      await call('POST', '/v1/attempt/verdict', outcome);
    },
  };
}

/**
 * Retries until the action succeeds, is refused for good, or the time is up; then it throws the last error. An action that
 * succeeds in part calls `renew` and has all the seconds again. They are never up before `earliestEndMs` of `performance.now`.
 */
export function repeat<T>(
  action: (renew: () => void) => Promise<T>,
  seconds: number,
  signal: AbortSignal,
  earliestEndMs = 0,
): Promise<T> {
  const endFromNow = () => Math.max(performance.now() + seconds * 1000, earliestEndMs);
  let endMs = endFromNow();
  const delayOf = (error: unknown, delayMs: number) => {
    const isFinal = error instanceof AttemptOver || error instanceof GatewayRefusal;
    return isFinal || performance.now() + delayMs > endMs ? null : delayMs;
  };
  const attempt = (reset: () => void) =>
    action(() => {
      endMs = endFromNow();
      reset();
    });
  return retry(attempt, { ...backoff, signal, delayOf });
}

function judge({ status, text }: HttpAnswer): unknown {
  if (status === 410) throw new AttemptOver('The job is over');
  if (status === 401) throw new UnknownToken('The gateway answered with 401');
  if (status >= 500 || status === 429 || status === 408) throw new Error(`The gateway answered with ${status}`);
  if (status < 200 || status > 299) throw new GatewayRefusal(`The gateway answered with ${status}`);
  // Cut off or not JSON: the readers of the protocol refuse it.
  return parseJson(text);
}

function refuse(sentence: string): never {
  throw new GatewayRefusal(sentence);
}
