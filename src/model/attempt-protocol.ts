import { isJsonObject } from '../base/parse-json.ts';
import { readStageTimes, type StageTime } from './attempt-stages.ts';
import { contentTypes, extensions, isContentType } from './content-types.ts';
import { type Endpoint, endpoints } from './job.ts';
import { type Delivered, maxKeyLength } from './outcome.ts';
import type { Args } from './request-parameters.ts';

/*
 * What gateway and worker say to each other as JSON; both sides check what they receive. The verdict is `Outcome`, because
 * a cluster tells of the end of an attempt too.
 */

/** Answer to `GET /v1/attempt`: the work of one attempt. */
export interface AttemptSpec {
  readonly job: string;
  readonly attempt: number;
  readonly endpoint: Endpoint;
  readonly args: Args;
  readonly limits: {
    readonly file_bytes: number;
    readonly seconds: number;
    /** Longest wait for the page of the source. */
    readonly inspect_seconds: number;
  };
  /** Bytes of every part of an upload but the last; `null` when the file goes whole to the gateway. */
  readonly part_bytes: number | null;
  /** Text of a cookie file, for the site of this URL alone. */
  readonly cookies: string | null;
}

/** Body of `POST /v1/attempt/progress`. */
export interface AttemptProgress {
  /** Percent. */
  readonly progress: number;
  readonly stage: string;
  readonly speed_bytes: number | null;
  readonly eta_seconds: number | null;
  readonly stages?: readonly StageTime[];
}

/** Body of `POST /v1/attempt/permit`: the file that is to be uploaded. */
export interface UploadRequest extends Omit<Delivered, 'key'> {
  readonly ext: string;
  /** SHA-256 of the bytes of each part, in hex; none when the file goes whole to the gateway. */
  readonly parts: readonly string[];
}

/** Answer to `POST /v1/attempt/permit`: where the file goes. */
export interface UploadPermit {
  readonly key: string;
  /** The parts that the object store does not have yet; `null` when the file goes whole to the gateway. */
  readonly parts: readonly UploadPart[] | null;
  /** True when the object store has a public address, which a worker reaches through egress alone. */
  readonly through_egress: boolean;
  /** Certificates, in PEM, of authorities that a worker trusts besides the public ones when it uploads; none from an older controller. */
  readonly authorities?: readonly string[];
}

export interface UploadPart {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly start: number;
  readonly bytes: number;
}

/** True for JSON that fits; a reader made of these costs a worker nothing at its start, where Ajv costs 40 ms of processor time. */
type Fits = (json: unknown) => boolean;

const text: Fits = (json) => typeof json === 'string';
const flag: Fits = (json) => typeof json === 'boolean';
const amount: Fits = (json) => Number.isInteger(json) && Number(json) >= 0;
const count: Fits = (json) => Number.isSafeInteger(json) && Number(json) >= 1;
const matching =
  (pattern: RegExp): Fits =>
  (json) =>
    typeof json === 'string' && pattern.test(json);
const oneOf =
  (words: readonly string[]): Fits =>
  (json) =>
    words.some((word) => word === json);
const orNull =
  (fits: Fits): Fits =>
  (json) =>
    json === null || fits(json);
const listOf =
  (fits: Fits): Fits =>
  (json) =>
    Array.isArray(json) && json.every((each) => fits(each));
const recordOf =
  (fits: Fits): Fits =>
  (json) =>
    isJsonObject(json) && Object.values(json).every((each) => fits(each));
const sha256 = matching(/^[0-9a-f]{64}$/);

export const readSpec = makeReader<AttemptSpec>({
  job: text,
  attempt: count,
  endpoint: oneOf(endpoints),
  args: isJsonObject,
  limits: objectOf<AttemptSpec['limits']>({ file_bytes: count, seconds: count, inspect_seconds: count }),
  part_bytes: orNull(count),
  cookies: orNull(text),
});

export const readProgress = makeReader<AttemptProgress>({
  progress: amount,
  stage: matching(/^[a-z_ ]{1,40}$/),
  speed_bytes: orNull(amount),
  eta_seconds: orNull(amount),
  stages: (json) => json === undefined || readStageTimes(json) !== null,
});

const readUploadRequest = makeReader<UploadRequest>({
  bytes: count,
  sha256,
  content_type: oneOf(contentTypes),
  ext: matching(/^[a-z0-9]{1,8}$/),
  parts: listOf(sha256),
});

/** Each content type has one name in an attempt: a worker that was taken over must not store any number of files. */
export function readUpload(json: unknown): UploadRequest | null {
  const upload = readUploadRequest(json);
  const type = upload?.content_type ?? '';
  return isContentType(type) && extensions[type] === upload?.ext ? upload : null;
}

const uploadPart = objectOf<UploadPart>({
  url: matching(/^https?:\/\//),
  headers: recordOf(text),
  start: amount,
  bytes: count,
});

export const readPermit = makeReader<UploadPermit>({
  key: (json) => typeof json === 'string' && json.length <= maxKeyLength,
  parts: orNull(listOf(uploadPart)),
  through_egress: flag,
  authorities: (json) => json === undefined || listOf(text)(json),
});

/** Returns a function that gives back JSON of the shape, and `null` for any other. */
function makeReader<T>(fields: FieldFits<T>): (json: unknown) => T | null {
  const fits = objectOf(fields);
  return (json) => (fits(json) ? (json as T) : null);
}

type FieldFits<T> = { readonly [Name in keyof T]-?: Fits };

/** Further fields are allowed: a neighbouring release may say more. */
function objectOf<T>(fields: FieldFits<T>): Fits {
  const each = Object.entries<Fits>(fields);
  return (json) => isJsonObject(json) && each.every(([name, fits]) => fits(json[name]));
}
