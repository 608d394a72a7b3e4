import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Refusal, refusals } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { readBody } from '../base/read-body.ts';
import { type AttemptSpec, readProgress, readUpload, type UploadPermit } from '../model/attempt-protocol.ts';
import { isEnded, type Job } from '../model/job.ts';
import { objectPrefix, readVerdict } from '../model/outcome.ts';
import type { Args } from '../model/request-parameters.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import type { AttemptId } from '../runners/runner.ts';
import { noteProgress } from '../store/jobs/note-progress.ts';
import { readJob } from '../store/jobs/read-job.ts';
import { recordVerdict } from '../store/jobs/record-verdict.ts';
import type { RecordStore } from '../store/script.ts';

export interface WorkerGatewayOptions {
  readonly store: RecordStore;
  /** The attempt that a token is good for; `null` when it is for none, or not any more. */
  readonly attemptOf: (token: string) => Promise<AttemptId | null>;
  readonly objects: Pick<ObjectStore, 'partBytes' | 'permit' | 'receive'>;
  readonly fileBytes: number;
  readonly inspectSeconds: number;
  /** The cookies of the site of a URL, `null` when there are none. */
  readonly cookiesOf: (url: unknown) => Promise<string | null>;
  readonly log: Log;
}

type GatewayRoute = (job: Job, req: IncomingMessage) => Promise<object | null>;

const maxJsonBytes = 64 * 1024;

/**
 * The one server that workers know: what an attempt is to do, where it may upload, and what it tells; 410 when it is over.
 * It remembers nothing, so each call of a worker may reach another one.
 */
export function makeWorkerGateway(options: WorkerGatewayOptions): Server {
  const { store, attemptOf, log } = options;
  const routes = makeRoutes(options);
  const serve = async (req: IncomingMessage, res: ServerResponse) => {
    const route = routes[`${req.method} ${req.url}`];
    const [, token] = /^Bearer (\S{1,4096})$/.exec(req.headers.authorization ?? '') ?? [];
    const told = token === undefined ? null : await attemptOf(token);
    if (told === null) return answer(res, 401, null);
    if (route === undefined) return answer(res, 404, null);
    const job = await readJob(store, told.jobId);
    if (job === null || isEnded(job.status) || job.attempt !== told.attempt) throw new Gone();
    answer(res, 200, await route(job, req));
  };
  return createServer((req, res) => {
    serve(req, res).catch((error: unknown) => {
      const status = statusOf(error);
      if (status === 500) log.error('the gateway failed', { error });
      // Its worker tries again; that Redis is away is told by its connection.
      if (error instanceof Refusal && req.method === 'PUT') log.warn('a file could not be stored', { error });
      answer(res, status, null);
    });
  });
}

/** What each call of a worker does; what is answered as JSON, `null` for nothing. */
function makeRoutes(options: WorkerGatewayOptions): Readonly<Record<string, GatewayRoute>> {
  const { store, objects } = options;
  const permit = ({ id, attempt }: Job, said: unknown) => {
    const { ext, ...upload } = orBad(readUpload(said));
    if (upload.bytes > options.fileBytes) throw new Bad();
    return objects.permit(`${objectPrefix(id, attempt)}media.${ext}`, upload);
  };
  return {
    'GET /v1/attempt': async (job) => {
      await noteProgress(store, job.id, job.attempt, {
        progress: 0,
        stage: 'inspect',
        speed_bytes: null,
        eta_seconds: null,
      });
      return specOf(job, options, store.clock.now());
    },
    'POST /v1/attempt/progress': async (job, req) => {
      const told = orBad(readProgress(await readJson(req)));
      const noted = await noteProgress(store, job.id, job.attempt, told);
      if (noted.refused) throw new Gone();
      return null;
    },
    'POST /v1/attempt/permit': async (job, req) => {
      const permitted = await permit(job, await readJson(req));
      const whole: UploadPermit = { key: permitted.key, parts: null, through_egress: false };
      return permitted.is === 'parts' ? permitted : whole;
    },
    'PUT /v1/attempt/object': async (job, req) => {
      const permitted = await permit(job, readHeaders(req));
      if (permitted.is === 'parts') throw new Bad();
      const { checksum } = await objects.receive(permitted, req);
      if (checksum !== req.headers['x-sha256']) throw new Bad();
      return null;
    },
    'POST /v1/attempt/verdict': async (job, req) => {
      const verdict = readVerdict(await readJson(req)) ?? { is: 'failed', code: 'worker_failed' };
      const recorded = await recordVerdict(store, job.id, job.attempt, verdict);
      if (recorded.refused) throw new Gone();
      return null;
    },
  };
}

class Gone extends Error {}
class Bad extends Error {}

function statusOf(error: unknown): number {
  if (error instanceof Gone) return 410;
  if (error instanceof Bad || error instanceof SyntaxError) return 400;
  return error instanceof Refusal ? refusals[error.code].status : 500;
}

function answer(res: ServerResponse, status: number, value: object | null): void {
  if (res.headersSent) return void res.destroy();
  const body = value === null ? '' : JSON.stringify(value);
  res.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body);
}

async function specOf(job: Job, options: WorkerGatewayOptions, now: number): Promise<AttemptSpec> {
  const { objects, fileBytes, inspectSeconds } = options;
  const seconds = Math.max(1, Math.floor(((job.deadline ?? now) - now) / 1000));
  const limits = { file_bytes: fileBytes, seconds, inspect_seconds: inspectSeconds };
  const { id, attempt, endpoint, args } = job;
  const cookies = await options.cookiesOf(args.query);
  return { job: id, attempt, endpoint, args: args as Args, limits, part_bytes: objects.partBytes, cookies };
}

/** What a file that comes whole says of itself. */
function readHeaders({ headers }: IncomingMessage): object {
  const { 'content-length': length, 'content-type': content_type, 'x-sha256': sha256, 'x-ext': ext } = headers;
  return { bytes: Number(length), sha256, content_type, ext, parts: [] };
}

function orBad<T>(value: T | null): T {
  if (value === null) throw new Bad();
  return value;
}

async function readJson(req: IncomingMessage): Promise<unknown> {
  const body = orBad(await readBody(req, maxJsonBytes));
  return JSON.parse(body.toString() || '{}');
}
