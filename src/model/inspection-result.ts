import { type FailureCode, failures, isFailureCode } from '../base/errors.ts';
import { type Metadata, readMetadata } from './metadata.ts';

/** Answer of the inspector about a URL. */
export type InspectionResult =
  | { readonly metadata: Metadata }
  | { readonly failure: { readonly code: FailureCode; readonly text: string } };

export interface Inspector {
  /** `account` asks: the inspector shares its slots among accounts. */
  inspect(url: string, account: string, gone: AbortSignal): Promise<InspectionResult>;
}

export function readInspection(json: unknown): InspectionResult | null {
  if (typeof json !== 'object' || json === null) return null;
  const { metadata, failure } = json as { metadata?: unknown; failure?: unknown };
  const read = metadata === undefined ? null : readMetadata(metadata);
  if (read !== null) return { metadata: read };
  if (typeof failure !== 'object' || failure === null) return null;
  const { code, text } = failure as { code?: unknown; text?: unknown };
  const known = isFailureCode(code) ? code : 'unclassified';
  return { failure: { code: known, text: typeof text === 'string' ? text.slice(0, 600) : failures[known].sentence } };
}
