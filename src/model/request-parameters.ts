import type { AddressException } from '../base/settings/kinds.ts';
import { type Endpoint, jobStatuses } from './job.ts';
import { mediaChoices } from './media-choices.ts';
import {
  choice,
  day,
  described,
  fieldPaths,
  flag,
  number,
  type ParameterTable,
  type ParameterValues,
  type Refused,
  readParameters,
  required,
  text,
  url,
} from './parameter-kinds.ts';
import { judgeUrl, judgeWebhookUrl, maxUrlLength, maxWebhookUrlLength } from './public-address.ts';
import { maxDurationSeconds } from './request-limits.ts';
import { catalogue, type JudgedStats, judgeStats } from './stats.ts';

/** Parameters as a caller gave them: texts of the query (arrays when repeated) and values of a JSON body, merged (D96). */
type Given = Readonly<Record<string, unknown>>;
type Parsed<T> = ({ readonly ok: true } & Readonly<T>) | Refused;

/** The parameters as understood, as a Job shows them: defaults filled in, no secret (D22). */
export type Args = Readonly<Record<string, string | number | boolean>>;

export interface CreditRequest {
  args: Args;
  webhook_url: string | null;
  /** In clear: it is sealed before it is stored. */
  webhook_authorization: string | null;
}

const seconds = (description: string, least: { minimum: number } | { exclusiveMinimum: number }) =>
  number(description, { ...least, maximum: maxDurationSeconds }, undefined, ', such as 90 or 2.5');
const part = {
  max_duration: seconds('Seconds; what is longer is cut to this length.', { exclusiveMinimum: 0 }),
  start: seconds('Second of the source at which the file begins; instead of max_duration.', { minimum: 0 }),
  end: seconds('Second of the source at which the file ends; instead of max_duration.', { exclusiveMinimum: 0 }),
};
const sourceUrl = (description: string) =>
  url(`${description} Its fragment counts where the site needs it.`, judgeUrl, maxUrlLength, [
    'https://example.com/film.mp4',
  ]);
const webhook = {
  webhook_url: url('URL to which the end of the job is posted.', judgeWebhookUrl, maxWebhookUrlLength),
  webhook_authorization: text(
    'Value of the Authorization header of the webhook.',
    { minLength: 1, maxLength: 4096, pattern: '^[!-~]([ -~]*[!-~])?$' },
    'must be 1 to 4096 visible ASCII characters, with spaces only between them',
  ),
};
const controls = '\\u0000-\\u001f\\u007f-\\u009f';
const noControls = { maxLength: 256, pattern: `^[^${controls}\\ud800-\\udfff]*$` };
/** Pattern for the document: no query holds a surrogate, and few readers of patterns know one. */
const shown = { pattern: `^[^${controls}]*$` };
const noControlsAllowed = 'must be at most 256 characters, none of them a control character';

/** The parameters of the endpoints that cost a credit, in the order of the contract. */
export const creditParameters = {
  video: {
    query: required(sourceUrl('URL of the video.')),
    download_type: choice('What is delivered.', ['audio_video', 'audio', 'video'], 'audio_video'),
    ...part,
    video_quality: choice('The largest picture wanted.', mediaChoices.video.quality, 'best'),
    video_format: choice('The container preferred; the file may differ.', mediaChoices.video.format, 'mp4'),
    ...webhook,
  },
  audio: {
    query: required(sourceUrl('URL of the sound, or of a video that has it.')),
    download_type: choice('What is delivered.', ['audio'], 'audio'),
    ...part,
    audio_quality: choice('The highest bit rate wanted.', mediaChoices.audio.quality, 'best'),
    audio_format: choice('The format preferred; the file may differ.', mediaChoices.audio.format, 'mp3'),
    ...webhook,
  },
  metadata: { query: required(sourceUrl('URL of the media to inspect.')) },
} as const satisfies Record<Endpoint, ParameterTable>;

export const globalParameters = {
  soft_fail: flag('Answers an error with status 200 and the same body.'),
  is_async: flag('Answers with a job_id at once. Downloads always do; endpoints that cost nothing ignore it.'),
  fields: fieldPaths(
    'What to keep of the answer: names with commas between them, dots leading into objects and arrays.',
  ),
} as const satisfies ParameterTable;

export type Flags = ParameterValues<typeof globalParameters>;

export const statsParameters = {
  engine: described(text('Engine to look at.', noControls, noControlsAllowed), {
    ...shown,
    minLength: 1,
    examples: Object.keys(catalogue),
  }),
  path: described(text('Endpoint to look at.', noControls, noControlsAllowed), {
    ...shown,
    enum: Object.values(catalogue).flatMap((paths) => paths.flatMap((path) => [path, `/api${path}`])),
  }),
} as const satisfies ParameterTable;

export const listParameters = {
  status: choice('Only jobs with this status.', jobStatuses, undefined),
  limit: number('How many jobs.', { type: 'integer', minimum: 1, maximum: 100 }, 20),
  cursor: text(
    'The next_cursor of the page before.',
    { minLength: 1, maxLength: 256, pattern: '^[!-~]*$' },
    'must be the next_cursor of an earlier answer',
  ),
} as const satisfies ParameterTable;

export const batchPageParameters = {
  cursor: text(
    'The next_cursor of the page before.',
    { minLength: 1, maxLength: 4, pattern: '^\\d{1,4}$' },
    'must be the next_cursor of an earlier answer',
  ),
} as const satisfies ParameterTable;

export const pollParameters = {
  wait: number('Seconds to wait for the end of the job.', { minimum: 0, maximum: 30 }, 0),
} as const satisfies ParameterTable;

export const usageParameters = {
  view: choice('Everything, or only plan and remaining.', ['full', 'reduced'], 'full'),
} as const satisfies ParameterTable;

export const historyParameters = {
  from: day('First day, in UTC; 30 days up to the last one unless given.'),
  to: day('Last day, in UTC; today unless given.'),
} as const satisfies ParameterTable;

export const idempotencyParameters = {
  idempotency_key: text(
    'Chosen by the caller: repeating the call with it within 24 hours gives the same answer and the same job.',
    { minLength: 1, maxLength: 255, pattern: '^[!-~]([ -~]*[!-~])?$' },
    'must be 1 to 255 visible characters, with spaces only between them',
  ),
} as const satisfies ParameterTable;

export const jobParameters = {
  id: required(text('UUID of the job.', { format: 'uuid' }, 'must be a UUID')),
} as const satisfies ParameterTable;

/** Reads a request that costs a credit; refuses it for its first wrong parameter, the global ones first. */
export function parseRequest(
  endpoint: Endpoint,
  given: Given,
  exceptions: readonly AddressException[],
): Parsed<CreditRequest> {
  const flags = parseFlags(given);
  if (!flags.ok) return flags;
  const read = readParameters<ParameterTable>(creditParameters[endpoint], given, exceptions);
  if (!read.ok) return read;
  const fault = judgePart(read.value);
  if (fault !== null) return { ok: false, sentence: `Bad Request: ${fault}` };
  const args: Record<string, string | number | boolean> = {};
  for (const name of Object.keys(read.value)) {
    const value = read.value[name];
    if (typeof value === 'string' || typeof value === 'number') args[name] = value;
  }
  args.is_async = endpoint !== 'metadata' || flags.is_async;
  const { webhook_url: address, webhook_authorization: secret } = read.value;
  const authorization = typeof secret === 'string' ? secret : null;
  if (authorization !== null) args.webhook_authorization = '***';
  return {
    ok: true,
    args,
    webhook_url: typeof address === 'string' ? address : null,
    webhook_authorization: authorization,
  };
}

function judgePart({ max_duration, start, end }: ParameterValues<ParameterTable>): string | null {
  if (start === undefined && end === undefined) return null;
  if (max_duration !== undefined) return 'max_duration cannot be used with start or end';
  return end !== undefined && Number(end) <= Number(start ?? 0) ? 'end must be greater than start' : null;
}

/** One text for all spellings of a request (D12). It holds the authorization in clear: store only a keyed hash of it. */
export function requestText(args: Args, authorization: string | null): string {
  const whole = authorization === null ? args : { ...args, webhook_authorization: authorization };
  return JSON.stringify(Object.entries(whole).sort(([one], [other]) => (one < other ? -1 : 1)));
}

export function parseFlags(given: Given): Parsed<Flags> {
  const read = readParameters(globalParameters, given);
  return read.ok ? { ok: true, ...read.value } : read;
}

/** Returns true if errors are to be answered as 200, however wrong the other parameters are; false when `soft_fail` itself is wrong. */
export function wantsSoftFail(given: Given): boolean {
  const read = readParameters({ soft_fail: globalParameters.soft_fail }, given);
  return read.ok && read.value.soft_fail;
}

/** Reads the engine and the path of a question about health (D51). */
export function parseStats(given: Given): JudgedStats {
  const read = readParameters(statsParameters, given);
  return read.ok ? judgeStats(read.value.engine, read.value.path) : { ...read, code: 'bad_request' };
}

/** Reads the job id in a path, in lower case as the record has it. */
export function parseJobId(id: string): Parsed<{ jobId: string }> {
  const read = readParameters(jobParameters, { id });
  return read.ok ? { ok: true, jobId: read.value.id.toLowerCase() } : read;
}
