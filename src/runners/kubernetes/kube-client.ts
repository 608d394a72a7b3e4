import { setTimeout as pause } from 'node:timers/promises';
import { Agent } from 'undici';
import type { Access, Tls } from './cluster-access.ts';
import { type Answer, exchange, Silence } from './kube-request.ts';
import type { Pace } from './rate-limiter.ts';

/** The API server understood and refused, or failed. */
export class KubeError extends Error {
  readonly status: number;
  readonly reason: string;
  readonly retryAfterMilliseconds: number | null;

  constructor(asked: string, status: number, body: StatusBody, retryAfterMilliseconds: number | null = null) {
    super(`${asked} was answered with ${status}${body.message ? `: ${body.message}` : ''}`);
    this.status = status;
    this.reason = body.reason ?? '';
    this.retryAfterMilliseconds = retryAfterMilliseconds;
  }
}

interface StatusBody {
  readonly message?: string | undefined;
  readonly reason?: string | undefined;
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;
export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

export interface Ask {
  readonly query?: Query;
  readonly body?: object;
  /** What is to be answered, when it is not plain JSON. */
  readonly accept?: string;
  readonly signal?: AbortSignal;
}

/** Speaks with the API server. Everything asked may be asked again: names are ours, so what exists was made by us. */
export interface Client {
  ask<T>(method: 'GET' | 'POST', path: string, ask?: Ask): Promise<T>;
  /** Changes or removes an object; what comes of it is not read. */
  change(method: 'PATCH' | 'DELETE', path: string, body: object): Promise<void>;
  /** Hears an answer line by line until it ends; nothing limits its length. */
  follow(path: string, query: Query, signal: AbortSignal, reader: Reader): Promise<void>;
  /** Whether as much is asked as may be. */
  isSpent(): boolean;
  close(): Promise<void>;
}

/** Reads an answer that goes on. What it throws ends that. */
export interface Reader {
  begun(): void;
  line(text: string): void;
}

export interface ClientOptions {
  readonly access: Access;
  readonly pace: Pace;
  readonly answerMilliseconds?: number;
}

const plain = 'application/json';
/** Asks the server to tell of an object that was changed its metadata alone. */
export const metadataOnly = `${plain};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,${plain}`;
const answerMilliseconds = 10_000;
const triesMost = 3;
const firstPause = 200;
const connections = 8;
const strategicMerge = 'application/strategic-merge-patch+json';

/** Opens few connections and keeps them. */
export function openClient({ access, pace, answerMilliseconds: patience = answerMilliseconds }: ClientOptions): Client {
  const server = new URL(access.server);
  let dispatcher = connect(access.tls, patience);
  let answeredAt = performance.now();
  /** With HTTP/2 all share one connection, which may be dead without a word: when nothing at all is answered, another one is opened. */
  const leave = (silent: Agent) => {
    if (silent !== dispatcher || performance.now() - answeredAt < patience) return;
    dispatcher = connect(access.tls, patience);
    void silent.destroy(new Silence());
  };
  /** Answers the text, and in time; an answer that is read as it comes has none, and only its beginning is limited. */
  const send = async (method: Method, path: string, ask: Ask, reader?: Reader): Promise<string> => {
    const turn = pace.take();
    if (turn > 0) await pause(turn, undefined, { ...(ask.signal && { signal: ask.signal }) });
    const content = contentOf(method, ask, await access.headers());
    const own = dispatcher;
    const begun = (status: number) => {
      answeredAt = performance.now();
      if (status < 300) reader?.begun();
    };
    try {
      const request = { ...placeOf(server, path, ask.query), method, ...content };
      const piece = reader && cutLines(reader.line);
      const answer = await exchange(own, request, { milliseconds: patience, signal: ask.signal, begun, piece });
      if (answer.status === 429) pace.slow();
      if (answer.status >= 300) throw faultOf(`${method} ${path}`, answer);
      return answer.text;
    } catch (error) {
      if (error instanceof Silence) leave(own);
      throw error;
    }
  };
  const sendAgain = async <T>(method: Method, path: string, ask: Ask, read: (text: string) => T): Promise<T> => {
    for (let tries = 1; ; tries++) {
      try {
        return read(await send(method, path, ask));
      } catch (error) {
        if (tries >= triesMost || ask.signal?.aborted || !passes(error, method)) throw error;
        const after = error instanceof KubeError ? error.retryAfterMilliseconds : null;
        const wait = after ?? firstPause * 2 ** (tries - 1) * (0.5 + Math.random());
        await pause(wait, undefined, { ...(ask.signal && { signal: ask.signal }) });
      }
    }
  };
  return {
    ask: <T>(method: Method, path: string, ask: Ask = {}) =>
      sendAgain(method, path, ask, (text) => JSON.parse(text) as T),
    change: (method, path, body) => sendAgain(method, path, { body, accept: metadataOnly }, () => undefined),
    follow: async (path, query, signal, reader) => void (await send('GET', path, { query, signal }, reader)),
    isSpent: pace.isSpent,
    close: () => dispatcher.destroy(),
  };
}

function connect(tls: Tls, patience: number): Agent {
  return new Agent({
    allowH2: true,
    connections,
    keepAliveTimeout: 60_000,
    bodyTimeout: 0,
    // A server that hangs may still go on: who asks has left by then.
    connect: { ...tls, timeout: 2 * patience, keepAlive: true, keepAliveInitialDelay: 30_000 },
  });
}

/** Hands on whole lines of what comes in pieces. */
function cutLines(line: (text: string) => void): (piece: string) => void {
  let rest: string[] = [];
  return (piece) => {
    const [first = '', ...more] = piece.split('\n');
    rest.push(first);
    for (const next of more) {
      const text = rest.join('');
      rest = [next];
      if (text) line(text);
    }
  };
}

/** A server may be found below a path of its address. */
function placeOf({ origin, pathname }: URL, path: string, query: Query = {}): { origin: string; path: string } {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) search.set(name, String(value));
  }
  return { origin, path: `${pathname.replace(/\/$/, '')}${path}${search.size > 0 ? `?${search}` : ''}` };
}

function contentOf(method: Method, { body, accept }: Ask, proof: Readonly<Record<string, string>>) {
  const type = method === 'PATCH' ? strategicMerge : plain;
  const headers = { accept: accept ?? plain, 'user-agent': 'trawl', ...proof };
  return body ? { headers: { ...headers, 'content-type': type }, body: JSON.stringify(body) } : { headers };
}

/** Whether the same request may succeed a moment later. */
function passes(error: unknown, method: Method): boolean {
  // Who has waited that long does something else first.
  if (error instanceof Silence) return false;
  if (!(error instanceof KubeError)) return true;
  // Of those that are made at the same moment, a quota lets some try again.
  if (method === 'POST' && error.reason === 'Conflict') return true;
  return error.status === 429 || (error.status >= 500 && error.retryAfterMilliseconds !== null);
}

function faultOf(asked: string, { status, headers, text }: Answer): KubeError {
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  return new KubeError(asked, status, readStatus(text), Number.isFinite(seconds) ? seconds * 1000 : null);
}

function readStatus(text: string): StatusBody {
  try {
    const { message, reason } = JSON.parse(text) as StatusBody;
    return { message, reason };
  } catch {
    // Not from the API server itself but from something before it.
    return { message: text.slice(0, 300) };
  }
}
