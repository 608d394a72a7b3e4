import { type FailureCode, failures, isFailureCode } from '../base/errors.ts';
import { type Metadata, readMetadata } from './metadata.ts';

/** Answer of the inspector about a URL. */
export type InspectionResult = { readonly metadata: Metadata } | InspectionFailure;

export interface InspectionFailure {
  readonly failure: { readonly code: FailureCode; readonly text: string };
}

/** Answer of the inspector about a playlist: the URLs of its first entries. */
type ListingResult = { readonly entries: readonly string[] } | InspectionFailure;

export interface Inspector {
  /** `account` asks: the inspector shares its slots among accounts. */
  inspect(url: string, account: string, gone: AbortSignal): Promise<InspectionResult>;
  /** Lists a playlist; a URL of one medium is its only entry. */
  list(url: string, maxEntries: number, account: string, gone: AbortSignal): Promise<ListingResult>;
}

export function readInspection(json: unknown): InspectionResult | null {
  if (typeof json !== 'object' || json === null) return null;
  const { metadata, failure } = json as { metadata?: unknown; failure?: unknown };
  const read = metadata === undefined ? null : readMetadata(metadata);
  if (read !== null) return { metadata: read };
  return readFailure(failure);
}

export function readListing(json: unknown): ListingResult | null {
  if (typeof json !== 'object' || json === null) return null;
  const { entries, failure } = json as { entries?: unknown; failure?: unknown };
  const areTexts = Array.isArray(entries) && entries.every((each) => typeof each === 'string');
  return areTexts ? { entries } : readFailure(failure);
}

function readFailure(failure: unknown): InspectionFailure | null {
  if (typeof failure !== 'object' || failure === null) return null;
  const { code, text } = failure as { code?: unknown; text?: unknown };
  const known = isFailureCode(code) ? code : 'unclassified';
  return { failure: { code: known, text: typeof text === 'string' ? text.slice(0, 600) : failures[known].sentence } };
}
