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

export const maxStringLength = 10_000;
export const maxUrlLength = 4_096;

/** Keeps exactly the 19 fields: a missing or wrong value becomes null, a long string is cut. Null when it is no object. */
export function readMetadata(json: unknown): Metadata | null {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return null;
  const given = new Map(Object.entries(json));
  const kept = Object.entries(metadataFields).map(([name, kind]) => [name, readValue(kind, given.get(name))]);
  return Object.fromEntries(kept) as Metadata;
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
