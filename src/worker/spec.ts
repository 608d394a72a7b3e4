import type { Order } from '../media/tools.ts';
import { endpoints } from '../model/job.ts';
import { longestKey } from '../model/outcome.ts';
import type { Args } from '../model/request.ts';

/** What one attempt is to do, as the gateway tells it. */
export interface Spec {
  readonly job: string;
  readonly attempt: number;
  readonly order: Order;
  readonly fileBytes: number;
  /** Longest run of this attempt. */
  readonly seconds: number;
  readonly inspectSeconds: number;
}

/** Where the file goes. Without parts it goes to the gateway. */
export interface Permit {
  readonly key: string;
  readonly parts: readonly Part[];
}

/** The next so many bytes of the file go to this URL with these headers. */
export interface Part {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: number;
}

/** Understands `{job, attempt, endpoint, args, limits: {file_bytes, seconds, inspect_seconds}}`; null when it makes no sense. */
export function readSpec(json: unknown): Spec | null {
  if (!isObject(json) || !isObject(json.args) || !isObject(json.limits)) return null;
  const { job, attempt, args, limits } = json;
  const { file_bytes: fileBytes, seconds, inspect_seconds: inspectSeconds } = limits;
  const endpoint = endpoints.find((word) => word === json.endpoint);
  if (typeof job !== 'string' || !isCount(attempt) || endpoint === undefined) return null;
  if (!isCount(fileBytes) || !isCount(seconds) || !isCount(inspectSeconds)) return null;
  return { job, attempt, order: { endpoint, args: args as Args }, fileBytes, seconds, inspectSeconds };
}

/** Understands `{key, parts: [{url, headers, bytes}]}`; null when it makes no sense. */
export function readPermit(json: unknown): Permit | null {
  if (!isObject(json) || typeof json.key !== 'string' || json.key.length > longestKey) return null;
  const parts = Array.isArray(json.parts) ? json.parts.map(readPart) : [];
  return parts.every((part) => part !== null) ? { key: json.key, parts } : null;
}

function readPart(json: unknown): Part | null {
  if (!isObject(json) || typeof json.url !== 'string' || !isCount(json.bytes)) return null;
  if (!/^https?:$/.test(URL.parse(json.url)?.protocol ?? '') || !isObject(json.headers)) return null;
  const headers = Object.entries(json.headers).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  return { url: json.url, headers: Object.fromEntries(headers), bytes: json.bytes };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
}

function isObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}
