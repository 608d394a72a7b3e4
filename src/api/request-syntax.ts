import type { IncomingMessage } from 'node:http';
import { type ParsedUrlQuery, parse } from 'node:querystring';
import { refuse } from '../base/errors.ts';
import { isJsonObject } from '../base/parse-json.ts';
import { readBody } from '../base/read-body.ts';
import { batchParameters } from '../model/batch.ts';
import { creditParameters, globalParameters } from '../model/request-parameters.ts';

/** The body of a POST: its parameters, and what is wrong with it. */
export interface RequestBody {
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly fault: string | null;
}

const defaultMaxBodyBytes = 16 * 1024;
/** Limit of what is read of a body that is refused: four times the largest one. */
const maxDiscardedBytes = 8 * 1024 * 1024;
/** Node's query parser ignores all parameters after this many, empty ones included. */
const maxParameters = 1000;
/** Names that a body may give once in each object. */
const bodyNames = new Set(
  [{ x_api_key: '', items: [] }, globalParameters, batchParameters, ...Object.values(creditParameters)].flatMap(
    Object.keys,
  ),
);
/** Objects around a parameter, its own included: the item of a batch is the second, the arguments of a tool are the third. */
const maxObjects = 3;
const notObject = 'Bad Request: the body must be a JSON object';
const notJson = 'Bad Request: the body must be of type application/json in UTF-8';
const compressed = 'Bad Request: the body must be a JSON object without a Content-Encoding';

/** Returns the path and query of a request's target, also of one that names scheme and host as for a proxy. */
export function originTarget(target: string): string {
  const rest = /^https?:\/\/[^/?#]*(.*)$/is.exec(target)?.[1];
  if (rest === undefined) return target;
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Returns a target in whose path each percent sign stands for itself. */
export function escapedPath(target: string): string {
  return target.replace(/^[^?#]*/, (path) => path.replaceAll('%', '%25'));
}

export function readQuery(target: string): ParsedUrlQuery {
  const query = /\?([^#]*)/.exec(target)?.[1];
  return parse(query ?? '');
}

/** Returns the parameters of query and body merged. The body wins (D96), but one that stands twice in the query stays a fault (D5). */
export function mergeParameters(
  query: Readonly<Record<string, unknown>>,
  body: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const merged = { ...query, ...body };
  for (const name of Object.keys(body)) if (Array.isArray(query[name])) merged[name] = query[name];
  return merged;
}

/** Returns a header field; Node joins one that was sent more than once. */
export function headerOf({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return value === undefined ? undefined : String(value);
}

/**
 * Returns true for what a page of another site has its visitor's browser ask for without the visitor's doing, such as an image, a frame or what a
 * script fetches. A link that the visitor follows is none; nor is a request with a key in a header, which browsers send for no other site unasked.
 */
export function isLoadedByOtherSite({ headers }: IncomingMessage): boolean {
  if (headers['sec-fetch-site'] !== 'cross-site') return false;
  const isFollowed = headers['sec-fetch-dest'] === 'document' && headers['sec-purpose'] === undefined;
  if (isFollowed) return false;
  return headers['x-api-key'] === undefined && headers.authorization === undefined;
}

/** Returns true when a request has exactly one Host: with two, a proxy in front may have read the other one (RFC 9112). */
export function hasOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let hosts = 0;
  for (let n = 0; n < rawHeaders.length; n += 2) {
    if (rawHeaders[n]?.toLowerCase() === 'host') hosts++;
  }
  return hosts === 1 || (hosts === 0 && httpVersion !== '1.1');
}

/** Returns the sentence about what is wrong with the query of a target, or `null`. */
export function judgeQuery(target: string): string | null {
  const start = target.indexOf('?');
  if (start < 0) return null;
  const query = target.slice(start);
  if (target.length > maxParameters && query.split('&').length > maxParameters) {
    return `Bad Request: there are more than ${maxParameters} parameters`;
  }
  return isDecodable(query) ? null : 'Bad Request: the query has a percent sign that does not encode UTF-8';
}

/** Returns true when bytes of a body follow the headers of a request. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Returns true while a part of a request's body is missing. */
export function isArriving(req: IncomingMessage): boolean {
  return hasBody(req) && !req.complete;
}

/** Returns true for a body that declares no more bytes than every route takes. */
export function isSmallBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= defaultMaxBodyBytes;
}

/** Refuses a body that declares more than the limit, before it is read. */
export function requireSmallBody({ headers }: IncomingMessage, maxBytes = defaultMaxBodyBytes): void {
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw refuse('payload_too_large');
}

/** Reads the JSON body of a request; refuses one above the limit before it has arrived whole. */
export async function readJsonBody(req: IncomingMessage, maxBytes = defaultMaxBodyBytes): Promise<RequestBody> {
  // The rest of a body that is too large is discarded later.
  const bytes = await readBody(req.iterator({ destroyOnReturn: false }), maxBytes);
  if (bytes === null) throw refuse('payload_too_large');
  if (bytes.length === 0) return { parameters: {}, fault: null };
  if (!isJson(req.headers['content-type'])) return { parameters: {}, fault: notJson };
  // Some callers send a plain body with this header, such as `utf-8`: only a body that cannot be read is refused.
  const fault = req.headers['content-encoding'] === undefined ? notObject : compressed;
  return parseObject(bytes) ?? { parameters: {}, fault };
}

/**
 * Reads a refused body to its end, or as far as the limit. A connection that is closed before is reset, and a caller that still sends
 * loses the answer.
 */
export function discardBody(req: IncomingMessage): Promise<void> {
  let left = maxDiscardedBytes;
  return new Promise((resolve) => {
    req.once('close', resolve);
    req.once('end', resolve);
    req.on('data', ({ length }: Buffer) => {
      left -= length;
      if (left < 0) resolve();
    });
    req.resume();
  });
}

function parseObject(bytes: Buffer): RequestBody | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    const value: unknown = JSON.parse(text);
    if (!isJsonObject(value)) return null;
    const name = repeatedName(text);
    const fault = name === null ? null : `Bad Request: ${name} must be a single value, given once`;
    return { parameters: value, fault };
  } catch {
    // No JSON, or no UTF-8: the caller is told the same.
    return null;
  }
}

/**
 * Returns a parameter, of those that are judged, that stands twice in one object of a JSON text, or `null`: `JSON.parse` keeps the last one,
 * other parsers the first. Its caller has parsed the text: for another one this takes the square of its length.
 */
export function repeatedName(json: string, judged: Pick<Set<string>, 'has'> = bodyNames): string | null {
  const seen: Set<string>[] = [];
  let objects = 0;
  for (const [token, colon] of json.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[{}]/g)) {
    if (token === '{') {
      if (objects < maxObjects) seen[objects] = new Set();
      objects++;
    } else if (token === '}') objects--;
    else if (colon !== undefined && objects <= maxObjects) {
      const name: string = JSON.parse(token.slice(0, -colon.length));
      const names = seen[objects - 1];
      if (names?.has(name)) return name;
      if (judged.has(name)) names?.add(name);
    }
  }
  return null;
}

function isJson(type: string | undefined): boolean {
  const [kind = '', ...parameters] = (type ?? '')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  return (
    kind === 'application/json' &&
    parameters.every((one) => !one.startsWith('charset=') || /^charset="?utf-?8"?$/.test(one))
  );
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    // It throws for nothing else.
    return false;
  }
}
