import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { type HttpAnswer, type HttpRequest, sendRequest } from '../base/http-client.ts';
import type { ServerAddress } from '../base/server-address.ts';
import {
  type AttemptProgress,
  type AttemptSpec,
  readPermit,
  readSpec,
  type UploadPermit,
  type UploadRequest,
} from '../model/attempt-protocol.ts';
import type { Outcome } from '../model/outcome.ts';

/** The one server that a worker knows. Everything is tried again until an answer comes or the time is up. */
export interface GatewayClient {
  readonly readSpec: () => Promise<AttemptSpec>;
  /** Tries once. */
  readonly reportProgress: (progress: AttemptProgress) => Promise<void>;
  readonly askPermit: (upload: UploadRequest) => Promise<UploadPermit>;
  /** Tries once, because the bytes can be read but once. */
  readonly putObject: (bytes: Readable, upload: Omit<UploadRequest, 'parts'>) => Promise<void>;
  readonly sendVerdict: (outcome: Outcome) => Promise<void>;
}

/** The job has ended or goes on in another attempt: nobody waits for this one. */
export class AttemptOver extends Error {}

/** The gateway understood and refused, or what it said makes no sense: asking again changes nothing. */
export class GatewayRefusal extends Error {}

export interface GatewayClientOptions {
  readonly address: ServerAddress;
  /** Gives what is good for this attempt alone. */
  readonly token: () => string;
  /** How long a call is repeated. */
  readonly patienceSeconds: number;
  readonly signal: AbortSignal;
}

const callTimeoutMs = 10_000;
/** A permit names up to 128 signed URLs. */
const maxAnswerBytes = 2 ** 20;
/** A connection on which nothing moves for so long is given up. */
const idleMs = 30_000;
const firstPauseMilliseconds = 100;
const longestPauseMilliseconds = 5_000;

/** Sends one request to the gateway or to the object store. */
export function send(request: Omit<HttpRequest, 'idleMs' | 'maxAnswerBytes'>): Promise<HttpAnswer> {
  return sendRequest({ ...request, idleMs, maxAnswerBytes });
}

/** Gives the calls to the gateway. */
export function openGatewayClient({ address, token, patienceSeconds, signal }: GatewayClientOptions): GatewayClient {
  const callOnce = async (method: 'GET' | 'POST', path: string, json?: unknown) => {
    const body = json === undefined ? '' : JSON.stringify(json);
    const headers = {
      authorization: `Bearer ${token()}`,
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
    };
    const limited = AbortSignal.any([signal, AbortSignal.timeout(callTimeoutMs)]);
    return judge(await send({ to: { server: address, path }, method, headers, body, signal: limited }));
  };
  const call = (...request: Parameters<typeof callOnce>) => {
    return repeat(() => callOnce(...request), patienceSeconds, signal);
  };
  return {
    readSpec: async () => readSpec(await call('GET', '/v1/attempt')) ?? refuse('The order makes no sense'),
    reportProgress: async (progress) => {
      await callOnce('POST', '/v1/attempt/progress', progress);
    },
    askPermit: async (upload) => {
      return readPermit(await call('POST', '/v1/attempt/permit', upload)) ?? refuse('The permit makes no sense');
    },
    putObject: async (body, { bytes, content_type, sha256, ext }) => {
      const headers = {
        authorization: `Bearer ${token()}`,
        'content-type': content_type,
        'content-length': String(bytes),
        'x-sha256': sha256,
        'x-ext': ext,
      };
      judge(await send({ to: { server: address, path: '/v1/attempt/object' }, method: 'PUT', headers, body, signal }));
    },
    sendVerdict: async (outcome) => {
      await call('POST', '/v1/attempt/verdict', outcome);
    },
  };
}

/**
 * Tries until it succeeds, is refused for good, or the time is up; then it throws what happened last. What succeeds in part
 * calls `renew`, and has all the time again.
 */
export async function repeat<T>(
  action: (renew: () => void) => Promise<T>,
  seconds: number,
  signal: AbortSignal,
): Promise<T> {
  let end = 0;
  let wait = 0;
  const renew = () => {
    end = performance.now() + seconds * 1000;
    wait = firstPauseMilliseconds;
  };
  renew();
  for (;;) {
    try {
      return await action(renew);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof AttemptOver || error instanceof GatewayRefusal || performance.now() + wait > end)
        throw error;
    }
    await pause(wait, undefined, { signal });
    wait = Math.min(2 * wait, longestPauseMilliseconds);
  }
}

function judge({ status, text }: HttpAnswer): unknown {
  if (status === 410) throw new AttemptOver('The job is over');
  if (status >= 500 || status === 429 || status === 408) throw new Error(`The gateway answered with ${status}`);
  if (status < 200 || status > 299) throw new GatewayRefusal(`The gateway answered with ${status}`);
  try {
    return text === '' ? null : JSON.parse(text);
  } catch {
    // Cut off or not ours: what it says is judged as if it said nothing.
    return null;
  }
}

function refuse(sentence: string): never {
  throw new GatewayRefusal(sentence);
}
