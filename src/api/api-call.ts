import type { IncomingMessage, ServerResponse } from 'node:http';
import type { KeyText } from '../model/api-key.ts';
import type { TraceContext } from '../model/trace-context.ts';
import type { LoggedKey } from '../store/log/write-lines.ts';
import type { CallerAddress } from './caller-address.ts';
import type { ApiReply, ReplyHeaders } from './reply.ts';
import type { Route } from './routes.ts';

/** A route with what its answers tell of it. */
export interface ServedRoute extends Route {
  readonly allowed: readonly string[];
  /** Its first path, as the request log spells it. */
  readonly template: string;
}

/** A request as the router hands it on: Node's own, with the parameters of its path. */
export interface ApiRequest extends IncomingMessage {
  method: string;
  url: string;
  params: Readonly<Record<string, string | string[]>>;
}

/** Span of a request; `parentId` is that of its caller, where it sends one. */
export interface RequestTrace extends TraceContext {
  readonly parentId: string | null;
}

/** One request on its way through the checks. */
export interface ApiCall {
  readonly req: ApiRequest;
  readonly res: ServerResponse;
  /** Headers that its answer has, whoever writes it: `writeHead` takes them all at once. */
  readonly headers: ReplyHeaders;
  /** `null` for a path that no route has. */
  readonly route: ServedRoute | null;
  readonly caller: CallerAddress;
  /** Arrival, by the monotonic clock. */
  readonly began: number;
  /** Parameters of query and body merged, without the key (D96). */
  given: Readonly<Record<string, unknown>>;
  readonly trace: RequestTrace | null;
  /** The key whose request log gets a line; `null` while there is none, or when the record does not know it. */
  logged: LoggedKey | null;
}

/** A request whose key has the right form. */
export interface KeyedCall extends ApiCall {
  readonly key: KeyText;
  /** Syntax error of the body or of the query, which the record weighs against rate, permission and quota (D10). */
  readonly fault: string | null;
  /** Waits without being one of the 1,000 requests in hand. */
  readonly idle: <T>(wait: () => Promise<T>) => Promise<T>;
  /** Key of the caller's choice where no header can carry it; it wins over the header Idempotency-Key. */
  readonly idempotencyKey?: string;
  /** Reads the body of a route that judges the key first; the parameters of the call then hold those of the body. */
  readonly readBody?: () => Promise<Pick<KeyedCall, 'given' | 'fault'>>;
}

/** A request for a route that needs no key. */
export type KeylessCall = Pick<ApiCall, 'req' | 'res' | 'headers'>;

/** Answers a request, or returns `null` when it has written the answer itself; refusals are thrown. */
export type KeyedHandler = (call: KeyedCall) => Promise<ApiReply | null>;
export type OpenHandler = (call: KeylessCall) => Promise<ApiReply | null>;
