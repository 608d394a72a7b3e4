import { setTimeout as pause } from 'node:timers/promises';
import { retry } from '../../base/backoff.ts';
import { parseJson } from '../../base/parse-json.ts';
import { shareRun } from '../../base/single-flight.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { connect, type KubeConnections } from './kube-connections.ts';
import {
  type AnswerLimits,
  type KubeAnswer,
  NoAnswerError,
  type StreamReader,
  sendKubeRequest,
} from './kube-request.ts';
import type { ApiRateLimit } from './rate-limiter.ts';

/** An answer of the API server with status 300 or above. */
export class KubeError extends Error {
  readonly status: number;
  readonly reason: string;
  readonly retryAfterMs: number | null;

  constructor(asked: string, status: number, body: StatusBody, retryAfterMs: number | null = null) {
    super(`${asked} was answered with ${status}${body.message ? `: ${body.message}` : ''}`);
    this.status = status;
    this.reason = body.reason ?? '';
    this.retryAfterMs = retryAfterMs;
  }
}

interface StatusBody {
  readonly message?: string | undefined;
  readonly reason?: string | undefined;
}

type KubeQuery = Readonly<Record<string, string | number | boolean | undefined>>;
type KubeMethod = 'GET' | 'POST' | 'PATCH' | 'DELETE';

interface KubeQuestion {
  readonly query?: KubeQuery;
  readonly body?: object;
  /** Content type of the answer, when it is not plain JSON. */
  readonly accept?: string;
  readonly signal?: AbortSignal;
}

/** Client of the API server. It repeats requests that failed: our names are deterministic, so an object that exists was made by us. */
export interface KubeClient {
  ask<T>(method: 'GET' | 'POST', path: string, question?: KubeQuestion): Promise<T>;
  /** Changes or deletes an object, unless it is gone or another one has its name now; its new state is not read. */
  change(method: 'PATCH' | 'DELETE', path: string, body: object): Promise<void>;
  /** Hands on an answer of any length line by line until it ends. */
  stream(path: string, query: KubeQuery, signal: AbortSignal, reader: StreamReader): Promise<void>;
  /** True while requests wait for the rate limit. */
  isExhausted(): boolean;
  /** Time for which a request that came now would wait for the rate limit, in milliseconds. */
  waitMs(): number;
  close(): Promise<unknown>;
}

interface SentQuestion extends KubeQuestion {
  readonly limits?: AnswerLimits;
  readonly reader?: StreamReader;
}

interface KubeClientOptions {
  readonly access: ClusterAccess;
  readonly rateLimit: ApiRateLimit;
  /** Usual time limit of an answer. */
  readonly answerMs?: number;
  /** Time limit of the few that are waited for while the API server answers others. */
  readonly maxAnswerMs?: number;
}

const plainJson = 'application/json';
/** Content type with which the API server answers only the metadata of an object. */
export const metadataOnly = `${plainJson};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,${plainJson}`;
const defaultAnswerMs = 10_000;
/** The API server itself gives up after as long; an admission webhook that hangs may hold up a request for 30 s. */
const defaultMaxAnswerMs = 60_000;
/** Requests that may wait so long at the same time: each holds up the step of a job, and the other steps need room. */
const maxPatientRequests = 6;
const maxTries = 3;
/** A request that is to wait longer fails; its step is tried again all the same. */
const maxRetryAfterMs = 10_000;
const backoff = { firstMs: 200, maxMs: 5_000, hasJitter: true };
const strategicMerge = 'application/strategic-merge-patch+json';

/** Opens a client with at most eight connections, which it keeps, and one for each stream. */
export function openKubeClient(options: KubeClientOptions): KubeClient {
  const { access, rateLimit, answerMs = defaultAnswerMs, maxAnswerMs = defaultMaxAnswerMs } = options;
  const server = new URL(access.server);
  let connections = connect(access.tls, answerMs);
  const silence = watchForSilence(answerMs, (timeoutMs, signal) =>
    send('GET', '/version', { limits: { timeoutMs }, signal }),
  );
  const withLimits = sharePatience(silence.confirmAnswers, answerMs, maxAnswerMs);
  /** With HTTP/2 all requests share one connection, which may die unnoticed: it is replaced when nothing was answered for the time limit. */
  const replaceSilent = (silent: KubeConnections) => {
    if (silent !== connections || !silence.isNoticed()) return;
    connections = connect(access.tls, answerMs);
    void silent.destroy(new NoAnswerError());
  };
  /** Returns the text of an answer; a streamed answer has none. */
  const send = async (method: KubeMethod, path: string, question: SentQuestion) => {
    const { signal, reader, limits } = question;
    const turnMs = rateLimit.take();
    if (turnMs > 0) await pause(turnMs, undefined, { signal });
    const request = {
      ...{ method, origin: server.origin, path: pathOf(server, path, question.query) },
      ...contentOf(method, question, await access.headers()),
    };
    const told = { signal, onStart: silence.end, reader };
    const used = connections;
    try {
      const answer = await withLimits(limits, (given) =>
        sendKubeRequest(reader ? used.streams : used.requests, request, { ...given, ...told }),
      );
      if (answer.status === 429) rateLimit.halve();
      if (answer.status >= 300) throw errorOf(`${method} ${path}`, answer);
      return answer.text;
    } catch (error) {
      if (error instanceof NoAnswerError) replaceSilent(used);
      throw error;
    }
  };
  const sendAgain = <T>(method: KubeMethod, path: string, question: KubeQuestion, read: (text: string) => T) => {
    const { signal } = question;
    const ask = () => silence.untilAnswered(signal).then(() => send(method, path, question));
    const delayOf = (error: unknown, delayMs: number, failures: number) =>
      failures < maxTries ? delayBefore(method, error, delayMs) : null;
    return retry(() => ask().then(read), { ...backoff, signal, delayOf });
  };
  return {
    ask: <T>(method: KubeMethod, path: string, question: KubeQuestion = {}) =>
      sendAgain(method, path, question, (text) => JSON.parse(text) as T),
    change: (method, path, body) =>
      sendAgain(method, path, { body, accept: metadataOnly }, () => undefined).catch(ignoreGone),
    stream: async (path, query, signal, reader) => {
      await silence.untilAnswered(signal);
      await send('GET', path, { query, signal, reader, limits: { timeoutMs: answerMs } });
    },
    isExhausted: rateLimit.isExhausted,
    waitMs: rateLimit.waitMs,
    close: () => connections.destroy(),
  };
}

function ignoreGone(error: unknown): void {
  if (!(error instanceof KubeError) || (error.status !== 404 && error.status !== 409)) throw error;
}

/** Turns the refusal of an object that is not there into `null`. */
export function nullWhenMissing(error: unknown): null {
  if (error instanceof KubeError && error.status === 404) return null;
  throw error;
}

/**
 * Returns a function that sends a request within limits of its own, else the usual ones. The first few wait longer while the API server
 * answers others: an admission webhook may hold them up.
 */
function sharePatience(mayWait: () => Promise<void>, answerMs: number, maxAnswerMs: number) {
  const usual = { timeoutMs: answerMs };
  const patient = { timeoutMs: maxAnswerMs, late: { everyMs: answerMs / 2, mayWait } };
  let taken = 0;
  return async <T>(own: AnswerLimits | undefined, send: (limits: AnswerLimits) => Promise<T>): Promise<T> => {
    if (own || taken >= maxPatientRequests) return send(own ?? usual);
    taken++;
    try {
      return await send(patient);
    } finally {
      taken--;
    }
  };
}

/**
 * Notices that the API server answers nothing. Then one request at a time asks for its version first, and the others fail at
 * once: each would hold its step for the time limit. Any answer ends that, so a webhook that holds up new Jobs stops nothing else.
 */
function watchForSilence(answerMs: number, askVersion: (timeoutMs: number, signal?: AbortSignal) => Promise<unknown>) {
  let answeredAt = performance.now();
  let silence: { isAsked: boolean } | null = null;
  const recentMs = answerMs / 2;
  const confirm = async (timeoutMs: number, signal?: AbortSignal) => {
    try {
      await askVersion(timeoutMs, signal);
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
    }
  };
  const confirmed = shareRun(() => confirm(recentMs));
  const untilAnswered = async (signal?: AbortSignal) => {
    const noticed = silence;
    if (noticed === null) return;
    if (noticed.isAsked) throw new NoAnswerError();
    noticed.isAsked = true;
    await confirm(answerMs, signal).finally(() => {
      noticed.isAsked = false;
    });
  };
  return {
    /** Throws unless the API server has just answered anything, or tells its version: one request for all late ones. */
    async confirmAnswers(): Promise<void> {
      if (performance.now() - answeredAt < recentMs) return;
      await confirmed.run();
    },
    /** Called for answers to requests alone: a watch has a connection of its own, which tells nothing of the one they share. */
    end() {
      answeredAt = performance.now();
      silence = null;
    },
    /** True when nothing was answered for the time limit. */
    isNoticed(): boolean {
      if (performance.now() - answeredAt < answerMs) return false;
      silence ??= { isAsked: false };
      return true;
    },
    /** Throws while the API server is silent. */
    untilAnswered,
  };
}

export function apiPathsOf(namespace: string) {
  const core = `/api/v1/namespaces/${namespace}`;
  return { jobs: `/apis/batch/v1/namespaces/${namespace}/jobs`, pods: `${core}/pods`, events: `${core}/events` };
}

/** Returns the path below that of the server's own URL, with the query. */
function pathOf({ pathname }: URL, path: string, query: KubeQuery = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) search.set(name, String(value));
  }
  return `${pathname.replace(/\/$/, '')}${path}${search.size > 0 ? `?${search}` : ''}`;
}

function contentOf(method: KubeMethod, { body, accept }: KubeQuestion, proof: Readonly<Record<string, string>>) {
  const type = method === 'PATCH' ? strategicMerge : plainJson;
  const headers = { accept: accept ?? plainJson, 'user-agent': 'trawl', ...proof };
  return body ? { headers: { ...headers, 'content-type': type }, body: JSON.stringify(body) } : { headers };
}

/** True when the same request may succeed a moment later. */
function mayPass(error: unknown, method: KubeMethod): boolean {
  // The caller has waited for the whole time limit already.
  if (error instanceof NoAnswerError) return false;
  if (!(error instanceof KubeError)) return true;
  // Of Jobs that are made at the same moment a quota refuses some, which may try again.
  if (method === 'POST' && error.reason === 'Conflict') return true;
  return error.status === 429 || (error.status >= 500 && error.retryAfterMs !== null);
}

/** Returns the time to wait before the same request, `null` when it may not pass, or only after so long that its step must make room. */
function delayBefore(method: KubeMethod, error: unknown, delayMs: number): number | null {
  if (!mayPass(error, method)) return null;
  const askedMs = (error instanceof KubeError ? error.retryAfterMs : null) ?? delayMs;
  return askedMs > maxRetryAfterMs ? null : askedMs;
}

function errorOf(asked: string, { status, headers, text }: KubeAnswer): KubeError {
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  return new KubeError(asked, status, readStatus(text), Number.isFinite(seconds) ? seconds * 1000 : null);
}

function readStatus(text: string): StatusBody {
  const status = parseJson(text) as StatusBody | null | undefined;
  // A proxy in front of the API server answers no Status object.
  return status ? { message: status.message, reason: status.reason } : { message: text.slice(0, 300) };
}
