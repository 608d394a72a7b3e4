import type { Schema } from '../model/answer-schemas.ts';
import { isEnded } from '../model/job.ts';
import { choice, number, type Parameter, type ParameterTable, readParameters } from '../model/parameter-kinds.ts';
import {
  creditParameters,
  globalParameters,
  idempotencyParameters,
  jobParameters,
} from '../model/request-parameters.ts';

/** One call of the API on behalf of a tool. */
export interface McpCall {
  readonly operation: 'video' | 'audio' | 'metadata' | 'job' | 'usage';
  readonly jobId?: string;
  /** Key under which a repeat of the call costs nothing more. */
  readonly idempotencyKey?: string;
  /** Aborted when the caller is gone: nobody hears of the answer. */
  readonly signal: AbortSignal;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** JSON of an answer; a refusal has its sentence as `error` and its code. */
export type McpAnswer =
  | { readonly body: Readonly<Record<string, unknown>> }
  | { readonly error: string; readonly error_code: string };

/** The API as one key sees it. */
export interface McpService {
  readonly call: (call: McpCall) => Promise<McpAnswer>;
  /** Calls `onSeen` at each change of a job until its end, or for so long, and returns the job as it is then. */
  readonly follow: (
    jobId: string,
    seconds: number,
    onSeen: (job: McpJob) => void,
    signal: AbortSignal,
  ) => Promise<McpAnswer>;
}

type McpJob = Readonly<Record<string, unknown>>;

interface McpTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Schema & { readonly type: 'object' };
  readonly annotations: {
    /** False for a tool that costs a credit: programs use the others without asking a person. */
    readonly readOnlyHint: boolean;
    readonly destructiveHint?: boolean;
    readonly openWorldHint: boolean;
  };
  readonly run: (
    service: McpService,
    given: Readonly<Record<string, unknown>>,
    context: McpContext,
  ) => Promise<McpAnswer>;
}

interface McpContext {
  /** Tells the progress of a job, from 0 to 100. */
  readonly report: (progress: number, words: string) => void;
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal;
}

/** Clients give up a call after 60 s unless they hear of progress, and do not learn the id of its job then. */
const defaultWaitSeconds = 45;
const maxQuietMs = 20_000;
/** Progress told after that silence, in percent: in the longest wait all of it stays below 1. */
const quietProgress = 0.001;
const maxWaitSeconds = 3600;
/** Parameters of the API that no tool has: a model could not use what they do, or could not read the answer. */
const unfit = ['webhook_url', 'webhook_authorization', 'download_type', ...Object.keys(globalParameters)];
const waitParameters = {
  wait_seconds: number(
    'Longest wait for the end of the job; then the tool `job` goes on.',
    { minimum: 0, maximum: maxWaitSeconds },
    defaultWaitSeconds,
  ),
} as const;
const awaitedJob = { job_id: jobParameters.id, ...waitParameters };
const ownParameters = { kind: choice('What the file is to be.', ['video', 'audio'], 'video'), ...waitParameters };
const downloadParameters: ParameterTable = {
  ...creditParameters.audio,
  ...creditParameters.video,
  ...idempotencyParameters,
};

const costly = { readOnlyHint: false, destructiveHint: false, openWorldHint: true };

export const mcpTools: readonly McpTool[] = [
  {
    name: 'metadata',
    description:
      'Tells title, duration, size of the picture and more of a media URL, without the file. Costs one credit.',
    inputSchema: inputOf({ ...creditParameters.metadata, ...idempotencyParameters }),
    annotations: costly,
    run: (service, given, { signal }) => callOnce(service, 'metadata', given, signal),
  },
  {
    name: 'download',
    description:
      'Downloads the media of a URL and answers with a signed link to the file, its size and SHA-256. Costs one credit when it ' +
      'succeeds. Give an idempotency_key, and give it again to repeat a call whose answer was lost: the repeat starts no second job.',
    inputSchema: inputOf({ ...downloadParameters, ...ownParameters }),
    annotations: costly,
    run: async (service, { kind, wait_seconds, ...parameters }, context) => {
      const own = readParameters(ownParameters, { kind, wait_seconds });
      if (!own.ok) return { error: own.sentence, error_code: 'bad_request' };
      const sound = kind === undefined ? findAudioParameter(parameters) : undefined;
      if (sound !== undefined)
        return { error: `Bad Request: kind must be audio for ${sound}`, error_code: 'bad_request' };
      const answer = await callOnce(service, own.value.kind, parameters, context.signal);
      return 'error' in answer ? answer : waitFor(service, String(answer.body.job_id), own.value.wait_seconds, context);
    },
  },
  {
    name: 'job',
    description: 'Tells how far a download is, and the signed link to its file at the end. Free.',
    inputSchema: inputOf(awaitedJob),
    annotations: { readOnlyHint: true, openWorldHint: false },
    run: async (service, given, context) => {
      const own = readParameters(awaitedJob, given);
      if (!own.ok) return { error: own.sentence, error_code: 'bad_request' };
      const { job_id: jobId, wait_seconds } = own.value;
      const answer = await service.call({ operation: 'job', jobId, signal: context.signal, parameters: {} });
      if ('error' in answer) return answer;
      return isEnded(answer.body.status) ? describe(answer) : waitFor(service, jobId, wait_seconds, context);
    },
  },
  {
    name: 'usage',
    description: 'Tells the credits that are left and what the account may do. Free.',
    inputSchema: { type: 'object', properties: {} },
    annotations: { readOnlyHint: true, openWorldHint: false },
    run: (service, _given, { signal }) => service.call({ operation: 'usage', signal, parameters: {} }),
  },
];

function inputOf(table: ParameterTable): McpTool['inputSchema'] {
  const entries = Object.entries<Parameter>(table).filter(([name]) => !unfit.includes(name));
  const properties = Object.fromEntries(entries.map(([name, { schema }]) => [name, schema]));
  return { type: 'object', properties, required: entries.filter(([, one]) => one.required).map(([name]) => name) };
}

/** Returns the first parameter of audio where none of video is given: the API would ignore it, and charge for a video that nobody wants. */
function findAudioParameter(parameters: Readonly<Record<string, unknown>>): string | undefined {
  const names = Object.keys(parameters);
  return names.some((name) => name.startsWith('video_')) ? undefined : names.find((name) => name.startsWith('audio_'));
}

/** Makes a call that costs a credit, under the key in the arguments of its tool. */
async function callOnce(
  service: McpService,
  operation: McpCall['operation'],
  { idempotency_key, ...parameters }: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<McpAnswer> {
  const read = readParameters(idempotencyParameters, { idempotency_key });
  if (!read.ok) return { error: read.sentence, error_code: 'bad_request' };
  const key = read.value.idempotency_key;
  const fitting = Object.entries(parameters).filter(([name]) => !unfit.includes(name));
  return service.call({
    operation,
    signal,
    parameters: Object.fromEntries(fitting),
    ...(key !== undefined && { idempotencyKey: key }),
  });
}

async function waitFor(
  service: McpService,
  jobId: string,
  seconds: number,
  { report, signal }: McpContext,
): Promise<McpAnswer> {
  const told = { progress: -1, words: '' };
  const tell = (progress: number, words: string) => {
    Object.assign(told, { progress, words });
    report(progress, words);
    quiet.refresh();
  };
  const seen = ({ progress, stage, status }: McpJob) => {
    told.words = String(stage ?? status);
    // The protocol wants each progress above the one before.
    if (typeof progress === 'number' && progress > told.progress) tell(progress, told.words);
  };
  const quiet = setInterval(() => tell(Math.max(0, told.progress) + quietProgress, told.words), maxQuietMs);
  const answer = await service.follow(jobId, seconds, seen, signal).finally(() => clearInterval(quiet));
  // The job goes on: an error would have a model start, and pay for, another one.
  const isUnwatched = 'error' in answer && ['rate_limited', 'unavailable'].includes(answer.error_code);
  return isUnwatched
    ? { body: { job_id: jobId, note: 'It goes on. Ask the tool job for it later.' } }
    : describe(answer);
}

/** Returns what a model needs of a job; a job that failed is a refusal. */
function describe(answer: McpAnswer): McpAnswer {
  if ('error' in answer) return answer;
  const { id, status, progress, stage, queue, result, error, error_code } = answer.body;
  if (isEnded(status) && status !== 'CompletedJob') {
    return { error: String(error), error_code: String(error_code) };
  }
  const { response = null, metadata = null, ...file } = (result ?? {}) as Record<string, unknown>;
  const title = (metadata as { title?: unknown } | null)?.title ?? null;
  const ended = result ? { file: { url: response, title, ...file } } : {};
  return { body: { job_id: id, status, progress, ...(stage ? { stage } : {}), ...(queue ? { queue } : {}), ...ended } };
}
