import { type FailureCode, failures, isFailureCode } from '../base/errors.ts';
import { isJsonObject, membersOf } from '../base/parse-json.ts';
import { type Metadata, readMetadata } from './metadata.ts';

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
  const { metadata, failure } = membersOf(json);
  const read = readMetadata(metadata);
  return read === null ? readFailure(failure) : { metadata: read };
}

export function readListing(json: unknown): ListingResult | null {
  const { entries, failure } = membersOf(json);
  const areTexts = Array.isArray(entries) && entries.every((each) => typeof each === 'string');
  return areTexts ? { entries } : readFailure(failure);
}

function readFailure(failure: unknown): InspectionFailure | null {
  if (!isJsonObject(failure)) return null;
  const { code, text } = failure;
  const known = isFailureCode(code) ? code : 'unclassified';
  return { failure: { code: known, text: typeof text === 'string' ? text.slice(0, 600) : failures[known].sentence } };
}
