import { isJsonObject } from '../base/parse-json.ts';
import type { AddressException } from '../base/settings/kinds.ts';
import { type Endpoint, endpoints } from './job.ts';
import {
  choice,
  flag,
  number,
  type ParameterTable,
  type Refused,
  readParameters,
  required,
} from './parameter-kinds.ts';
import { maxBatchItems } from './request-limits.ts';
import { type CreditRequest, creditParameters, parseFlags, parseRequest, requestText } from './request-parameters.ts';

export const batchPageSize = 100;

export const batchParameters = {
  endpoint: required(choice('What each item asks for.', endpoints, undefined)),
  max_credits: number('The batch is refused when it has more items.', { type: 'integer', minimum: 1 }, undefined),
  max_items: number(
    'Most entries of the playlist that are taken, the first ones; without `playlist` the batch is refused when it has more items.',
    { type: 'integer', minimum: 1, maximum: maxBatchItems },
    undefined,
  ),
  playlist: flag('The one item names a playlist, each entry of which becomes an item with the same parameters.'),
  webhook_url: creditParameters.video.webhook_url,
  webhook_authorization: creditParameters.video.webhook_authorization,
} as const satisfies ParameterTable;

interface BatchRequest {
  readonly endpoint: Endpoint;
  /** With a playlist the one item that stands for each of its entries. */
  readonly items: readonly CreditRequest[];
  readonly isPlaylist: boolean;
  readonly maxItems: number;
  readonly maxCredits: number | null;
  readonly webhook_url: string | null;
  readonly webhook_authorization: string | null;
}

type GivenBatch = Readonly<Record<string, unknown>>;

/** Reads a batch; refuses it for its first wrong parameter, or for the first wrong item by its place. */
export function parseBatch(
  given: GivenBatch,
  exceptions: readonly AddressException[],
): ({ readonly ok: true } & BatchRequest) | Refused {
  const flags = parseFlags(given);
  if (!flags.ok) return flags;
  const { items: list, ...rest } = given;
  const read = readParameters(batchParameters, rest, exceptions);
  if (!read.ok) return read;
  const { endpoint, max_credits, max_items, playlist, webhook_url, webhook_authorization } = read.value;
  if (!Array.isArray(list) || list.length === 0 || list.length > maxBatchItems) {
    return wrong(`items must be a list of 1 to ${maxBatchItems} objects`);
  }
  if (playlist && list.length > 1) return wrong('items must be a list of the one playlist');
  const maxItems = max_items ?? maxBatchItems;
  if (maxItems < list.length) return wrong(`max_items is ${maxItems}, but there are ${list.length} items`);
  if (max_credits !== undefined && max_credits < list.length) {
    return wrong(`max_credits is ${max_credits}, but there are ${list.length} items`);
  }
  const items: CreditRequest[] = [];
  for (const [index, item] of (list as unknown[]).entries()) {
    if (!isJsonObject(item)) return wrong(`items[${index}] must be an object`);
    const parsed = parseRequest(endpoint, { ...item, is_async: true }, exceptions);
    if (!parsed.ok) return wrong(`items[${index}]: ${parsed.sentence.replace(/^Bad Request: /, '')}`);
    items.push(parsed);
  }
  return {
    ...{ ok: true, endpoint, items },
    isPlaylist: playlist,
    maxItems,
    maxCredits: max_credits ?? null,
    webhook_url: webhook_url ?? null,
    webhook_authorization: webhook_authorization ?? null,
  };
}

function wrong(sentence: string): Refused {
  return { ok: false, sentence: `Bad Request: ${sentence}` };
}

/**
 * Returns an item for each entry of a playlist, with the parameters of the one item that named it. An entry that no caller could ask
 * for, such as one at an address that is not public, is left out.
 */
export function expandPlaylist(
  request: BatchRequest,
  entries: readonly string[],
  exceptions: readonly AddressException[],
): { readonly ok: true; readonly items: readonly CreditRequest[] } | Refused {
  const { endpoint, maxCredits } = request;
  const [first] = request.items;
  // The listing comes out of a sandbox that the page may have taken over: it bounds nothing.
  const wanted = [...new Set(entries)].slice(0, request.maxItems);
  const queries = wanted.flatMap((entry) => {
    const parsed = parseRequest(endpoint, { query: entry }, exceptions);
    return parsed.ok ? [String(parsed.args.query)] : [];
  });
  // One URL may be spelled in several ways.
  const items = [...new Set(queries)].flatMap((query) => (first ? [{ ...first, args: { ...first.args, query } }] : []));
  if (items.length === 0) return wrong('the playlist has no entries that can be asked for');
  if (maxCredits !== null && maxCredits < items.length) {
    return wrong(`max_credits is ${maxCredits}, but the playlist has ${items.length} entries`);
  }
  return { ok: true, items };
}

/** Returns how many calls a batch counts as against the quotas of its key, also when it is wrong. */
export function countItems({ items }: GivenBatch): number {
  return Array.isArray(items) ? Math.min(Math.max(items.length, 1), maxBatchItems) : 1;
}

/** One text for all spellings of a batch (D12). It holds authorizations in clear: store only a keyed hash of it. */
export function batchText(request: BatchRequest): string {
  const { endpoint, items, isPlaylist, webhook_url, webhook_authorization } = request;
  const texts = items.map((item) => requestText(item.args, item.webhook_authorization));
  const limits = [isPlaylist, request.maxItems, request.maxCredits];
  return JSON.stringify([endpoint, texts, webhook_url, webhook_authorization, ...limits]);
}
