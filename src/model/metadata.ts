/** The 19 fields of the contract in its order, each with what its value must be when it is not null. */
export const metadataFields = {
  id: 'string',
  ext: 'string',
  title: 'string',
  width: 'integer',
  height: 'integer',
  channel: 'string',
  channel_url: 'url',
  is_live: 'boolean',
  was_live: 'boolean',
  live_status: 'live_status',
  duration: 'number',
  extractor: 'string',
  thumbnail: 'url',
  like_count: 'integer',
  view_count: 'integer',
  description: 'string',
  upload_date: 'integer',
  webpage_url: 'url',
  original_url: 'url',
} as const;

export const liveStatuses = ['not_live', 'is_live', 'is_upcoming', 'was_live', 'post_live'] as const;

interface FieldValues {
  readonly string: string;
  readonly url: string;
  readonly integer: number;
  readonly number: number;
  readonly boolean: boolean;
  readonly live_status: (typeof liveStatuses)[number];
}

type FieldKind = keyof FieldValues;

export type Metadata = {
  readonly [Name in keyof typeof metadataFields]: FieldValues[(typeof metadataFields)[Name]] | null;
};

const maxStringLength = 10_000;
const maxUrlLength = 4_096;

/** Keeps exactly the 19 fields: a missing or wrong value becomes null, a long string is cut. Null when it is no object. */
export function readMetadata(json: unknown): Metadata | null {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return null;
  const given = new Map(Object.entries(json));
  const kept = Object.entries(metadataFields).map(([name, kind]) => [name, readValue(kind, given.get(name))]);
  return Object.fromEntries(kept) as Metadata;
}

/** Longest metadata that the record keeps of an ended job, as UTF-8 bytes of JSON. */
const maxStoredBytes = 16_000;

interface MeasuredText {
  readonly name: string;
  readonly text: string;
  readonly bytes: number;
}

/**
 * Returns the metadata, shortened to `maxBytes` of JSON: the longest texts first, by whole characters, until others are as
 * long. A URL is left out instead, because its beginning names another page.
 */
export function shortenMetadata<T extends Readonly<Record<string, unknown>>>(
  metadata: T,
  maxBytes = maxStoredBytes,
): T {
  const kept: Record<string, unknown> = { ...metadata };
  for (let excess = bytesOf(kept) - maxBytes; excess > 0; excess = bytesOf(kept) - maxBytes) {
    const texts = textsOf(kept);
    const level = levelOf(texts, excess);
    const long = texts.filter(({ bytes }) => bytes > level);
    const url = long.find(({ name }) => isUrlField(name));
    if (url) kept[url.name] = null;
    else for (const { name, text } of long) kept[name] = cutText(text, level);
    if (long.length === 0) break;
  }
  return kept as T;
}

function textsOf(metadata: Readonly<Record<string, unknown>>): MeasuredText[] {
  return Object.entries(metadata)
    .flatMap(([name, text]) => (typeof text === 'string' ? { name, text, bytes: bytesOf(text) } : []))
    .sort((one, other) => other.bytes - one.bytes);
}

/** Returns how long texts may be at most, so that all together have so many bytes less. */
function levelOf(longestFirst: readonly MeasuredText[], excess: number): number {
  let sum = -excess;
  for (const [n, { bytes }] of longestFirst.entries()) {
    sum += bytes;
    const level = Math.floor(sum / (n + 1));
    if (level >= (longestFirst[n + 1]?.bytes ?? 0)) return Math.max(level, bytesOf(''));
  }
  return bytesOf('');
}

function isUrlField(name: string): boolean {
  return Object.hasOwn(metadataFields, name) && metadataFields[name as keyof typeof metadataFields] === 'url';
}

/** Returns the longest beginning of whole characters that has at most so many bytes of JSON. */
function cutText(text: string, maxBytes: number): string {
  let bytes = bytesOf('');
  let end = 0;
  for (const character of text) {
    bytes += bytesOf(character) - bytesOf('');
    if (bytes > maxBytes) break;
    end += character.length;
  }
  return text.slice(0, end);
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function readValue(kind: FieldKind, value: unknown): string | number | boolean | null {
  switch (kind) {
    case 'string':
      return typeof value === 'string' ? cleanString(value) : null;
    case 'url':
      return typeof value === 'string' && isWebUrl(value) ? value : null;
    case 'live_status':
      return liveStatuses.find((word) => word === value) ?? null;
    case 'integer':
      return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
  }
}

function cleanString(value: string): string {
  return value
    .slice(0, maxStringLength)
    .replace(/[^\P{Cc}\n\t]/gu, '')
    .toWellFormed();
}

function isWebUrl(value: string): boolean {
  return value.length <= maxUrlLength && /^https?:\/\/[^\s\p{Cc}]+$/iu.test(value) && URL.canParse(value);
}
