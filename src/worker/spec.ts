import type { Order } from '../media/tools.ts';
import { endpoints } from '../model/job.ts';
import { longestKey } from '../model/outcome.ts';
import type { Args } from '../model/request-parameters.ts';

/** What one attempt is to do, as the gateway tells it. */
export interface Spec {
  readonly job: string;
  readonly attempt: number;
  readonly order: Order;
  readonly fileBytes: number;
  /** Longest run of this attempt. */
  readonly seconds: number;
  readonly inspectSeconds: number;
  /** Bytes of every part of an upload but the last; `null` when the file goes whole to the gateway. */
  readonly partBytes: number | null;
  /** For the site of the order alone. */
  readonly cookies: string | null;
}

/** Where the file goes. */
export interface Permit {
  readonly key: string;
  /** `null` when it goes whole to the gateway, else the parts that the object store does not have yet. */
  readonly parts: readonly Part[] | null;
  /** Whether the object store is reached through egress alone. */
  readonly throughEgress: boolean;
}

/** These bytes of the file go to this URL with these headers. */
export interface Part {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly start: number;
  readonly bytes: number;
}

/**
 * Understands `{job, attempt, endpoint, args, limits: {file_bytes, seconds, inspect_seconds}, part_bytes, cookies}`; null when it
 * makes no sense.
 */
export function readSpec(json: unknown): Spec | null {
  if (!isObject(json) || !isObject(json.args) || !isObject(json.limits)) return null;
  const { job, attempt, args, limits, part_bytes: partBytes, cookies } = json;
  const { file_bytes: fileBytes, seconds, inspect_seconds: inspectSeconds } = limits;
  const endpoint = endpoints.find((word) => word === json.endpoint);
  if (typeof job !== 'string' || !isCount(attempt) || endpoint === undefined) return null;
  if (!isCount(fileBytes) || !isCount(seconds) || !isCount(inspectSeconds)) return null;
  if (partBytes !== null && !isCount(partBytes)) return null;
  if (cookies !== null && typeof cookies !== 'string') return null;
  const order = { endpoint, args: args as Args };
  return { job, attempt, order, fileBytes, seconds, inspectSeconds, partBytes, cookies };
}

/** Understands `{key, parts: [{url, headers, start, bytes}], through_egress}`; null when it makes no sense. */
export function readPermit(json: unknown): Permit | null {
  if (!isObject(json) || typeof json.key !== 'string' || json.key.length > longestKey) return null;
  const throughEgress = json.through_egress === true;
  if (!Array.isArray(json.parts)) return json.parts === null ? { key: json.key, parts: null, throughEgress } : null;
  const parts = json.parts.map(readPart);
  return parts.every((part) => part !== null) ? { key: json.key, parts, throughEgress } : null;
}

function readPart(json: unknown): Part | null {
  if (!isObject(json) || typeof json.url !== 'string' || !isCount(json.bytes)) return null;
  if (json.start !== 0 && !isCount(json.start)) return null;
  if (!/^https?:$/.test(URL.parse(json.url)?.protocol ?? '') || !isObject(json.headers)) return null;
  const headers = Object.entries(json.headers).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  return { url: json.url, headers: Object.fromEntries(headers), start: json.start, bytes: json.bytes };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
}

function isObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}
