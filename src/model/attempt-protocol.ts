import { Ajv } from 'ajv';
import { contentTypes } from './content-types.ts';
import { type Endpoint, endpoints } from './job.ts';
import { maxKeyLength } from './outcome.ts';
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
}

/** Stage in which a worker records a live source, which it could not do again. */
export const recordingStage = 'record';

/** Body of `POST /v1/attempt/permit`: the file that is to be uploaded. */
export interface UploadRequest {
  readonly bytes: number;
  readonly sha256: string;
  readonly content_type: string;
  readonly ext: string;
  /** SHA-256 of the bytes of each part, in hex; none when the file goes whole to the gateway. */
  readonly parts: readonly string[];
}

/** Answer to `POST /v1/attempt/permit`: where the file goes. */
export interface UploadPermit {
  readonly key: string;
  /** The parts that the object store does not have yet; `null` when the file goes whole to the gateway. */
  readonly parts: readonly UploadPart[] | null;
  /** True when the object store has a public address, which a worker reaches through egress alone; absent means false. */
  readonly through_egress?: boolean;
}

export interface UploadPart {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly start: number;
  readonly bytes: number;
}

type JsonSchema = Readonly<Record<string, unknown>>;

const text = { type: 'string' };
const count = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER };
const amount = { type: 'integer', minimum: 0 };
const sha256 = { type: 'string', pattern: '^[0-9a-f]{64}$' };
/** Without strict mode and checks of its own schemas, which every worker would pay for at its start. */
const ajv = new Ajv({ meta: false, validateSchema: false, strict: false });

export const readSpec = makeReader<AttemptSpec>({
  job: text,
  attempt: count,
  endpoint: { enum: endpoints },
  args: { type: 'object' },
  limits: objectOf<AttemptSpec['limits']>({ file_bytes: count, seconds: count, inspect_seconds: count }),
  part_bytes: orNull(count),
  cookies: orNull(text),
});

export const readProgress = makeReader<AttemptProgress>({
  progress: amount,
  stage: { type: 'string', pattern: '^[a-z_ ]{1,40}$' },
  speed_bytes: orNull(amount),
  eta_seconds: orNull(amount),
});

export const readUpload = makeReader<UploadRequest>({
  bytes: count,
  sha256,
  content_type: { enum: contentTypes },
  ext: { type: 'string', pattern: '^[a-z0-9]{1,8}$' },
  parts: { type: 'array', items: sha256 },
});

const uploadPart = objectOf<UploadPart>({
  url: { type: 'string', pattern: '^https?://' },
  headers: { type: 'object', additionalProperties: text },
  start: { ...count, minimum: 0 },
  bytes: count,
});

const permitProperties = {
  key: { type: 'string', maxLength: maxKeyLength },
  parts: orNull({ type: 'array', items: uploadPart }),
  through_egress: { type: 'boolean' },
};

/** A controller of the release before leaves `through_egress` out when the file goes whole to the gateway. */
export const readPermit = makeReader<UploadPermit>(permitProperties, ['key', 'parts']);

/** Returns a function that gives back JSON of the shape, and `null` for any other; its first call compiles the schema. */
function makeReader<T>(...shape: Parameters<typeof objectOf<T>>): (json: unknown) => T | null {
  let fits: ((json: unknown) => json is T) | null = null;
  return (json) => {
    fits ??= ajv.compile<T>(objectOf<T>(...shape));
    return fits(json) ? json : null;
  };
}

function objectOf<T>(
  properties: Readonly<Record<keyof T, JsonSchema>>,
  required: readonly string[] = Object.keys(properties),
): JsonSchema {
  return { type: 'object', properties, required };
}

function orNull(schema: JsonSchema): JsonSchema {
  return { ...schema, type: ['null', schema.type] };
}
