import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Refusal, refusals } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { isEnded, type Job } from '../model/job.ts';
import { contentTypes, type Outcome, objectPrefix, readVerdict } from '../model/outcome.ts';
import type { ObjectStore, Upload, WholePermit } from '../objects/objects.ts';
import type { AttemptOf } from '../runners/runner.ts';
import { readJob } from '../store/jobs.ts';
import { noteProgress } from '../store/lifecycle.ts';
import type { Store } from '../store/script.ts';

export interface GatewayOptions {
  readonly store: Store;
  /** The attempt that a token is good for; `null` when it is for none, or not any more. */
  readonly attemptOf: (token: string) => Promise<AttemptOf | null>;
  readonly objects: Pick<ObjectStore, 'partBytes' | 'permit' | 'receive'>;
  readonly fileBytes: number;
  readonly inspectSeconds: number;
  readonly log: Log;
  /** Told when a worker has said how its attempt ended. */
  readonly ended: (job: string) => void;
}

/** The one server that workers know. */
export interface Gateway {
  readonly server: Server;
  /** What the worker of an attempt said last, until it is forgotten. */
  verdictOf(name: string): Outcome | null;
  forget(name: string): void;
}

interface Attempt {
  readonly name: string;
  readonly job: Job;
}

type Route = (attempt: Attempt, req: IncomingMessage) => Promise<object | null>;

const jsonBytesMax = 64 * 1024;
const extensionForm = /^[a-z0-9]{1,8}$/;

/** What an attempt is to do, where it may upload, and what it tells; 410 when its job is over. */
export function makeGateway(options: GatewayOptions): Gateway {
  const { store, attemptOf, log } = options;
  const verdicts = new Map<string, Outcome>();
  const permits = new Map<string, WholePermit>();

  const routes = makeRoutes(options, verdicts, permits);
  const serve = async (req: IncomingMessage, res: ServerResponse) => {
    const route = routes[`${req.method} ${req.url}`];
    const [, token] = /^Bearer (\S{1,4096})$/.exec(req.headers.authorization ?? '') ?? [];
    const told = token === undefined ? null : await attemptOf(token);
    if (told === null) return answer(res, 401, null);
    if (route === undefined) return answer(res, 404, null);
    const job = await readJob(store, told.job);
    if (job === null || isEnded(job.status) || job.attempt !== told.attempt) throw new Gone();
    answer(res, 200, await route({ name: `${job.id}-${job.attempt}`, job }, req));
  };
  const server = createServer((req, res) => {
    serve(req, res).catch((error: unknown) => {
      const status = statusOf(error);
      if (status === 500) log.error('the gateway failed', { error });
      // Its worker tries again; that Redis is away is told by its connection.
      if (error instanceof Refusal && req.method === 'PUT') log.warn('a file could not be stored', { error });
      answer(res, status, null);
    });
  });
  return {
    server,
    verdictOf: (name) => verdicts.get(name) ?? null,
    forget: (name) => {
      verdicts.delete(name);
      permits.delete(name);
    },
  };
}

/** What each call of a worker does; what is answered as JSON, `null` for nothing. */
function makeRoutes(
  options: GatewayOptions,
  verdicts: Map<string, Outcome>,
  permits: Map<string, WholePermit>,
): Readonly<Record<string, Route>> {
  const { store, objects } = options;
  return {
    'GET /v1/attempt': async ({ job }) => {
      await noteProgress(store, job.id, job.attempt, {
        progress: 0,
        stage: 'inspect',
        speed_bytes: null,
        eta_seconds: null,
      });
      return specOf(job, options, store.clock.now());
    },
    'POST /v1/attempt/progress': async ({ job }, req) => {
      const told = readProgress(await readJson(req));
      if (!(await noteProgress(store, job.id, job.attempt, told))) throw new Gone();
      return null;
    },
    'POST /v1/attempt/permit': async ({ name, job }, req) => {
      const { ext, ...upload } = readUpload(await readJson(req), options.fileBytes);
      const permit = await objects.permit(`${objectPrefix(job.id, job.attempt)}media.${ext}`, upload);
      if (permit.is === 'parts') return permit;
      permits.set(name, permit);
      return { key: permit.key, parts: null };
    },
    'PUT /v1/attempt/object': async ({ name }, req) => {
      const permit = permits.get(name);
      if (!permit || Number(req.headers['content-length']) !== permit.bytes) throw new Bad();
      const { checksum } = await objects.receive(permit, req);
      if (checksum !== req.headers['x-sha256']) throw new Bad();
      return null;
    },
    'POST /v1/attempt/verdict': async ({ name, job }, req) => {
      const outcome = readVerdict(await readJson(req));
      verdicts.set(name, outcome ?? { is: 'failed', code: 'worker_failed' });
      options.ended(job.id);
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

function specOf(job: Job, { objects, fileBytes, inspectSeconds }: GatewayOptions, now: number): object {
  const seconds = Math.max(1, Math.floor(((job.deadline ?? now) - now) / 1000));
  const limits = { file_bytes: fileBytes, seconds, inspect_seconds: inspectSeconds };
  const { id, attempt, endpoint, args } = job;
  return { job: id, attempt, endpoint, args, limits, part_bytes: objects.partBytes };
}

/** Understands `{bytes, sha256, content_type, ext, parts}`; what it says of the bytes is for the object store to judge. */
function readUpload(json: unknown, fileBytes: number): Upload & { readonly ext: string } {
  const { bytes, sha256, content_type, ext, parts } = (json ?? {}) as Record<string, unknown>;
  const fits = typeof bytes === 'number' && bytes >= 1 && bytes <= fileBytes;
  if (!fits || typeof sha256 !== 'string' || typeof ext !== 'string' || !extensionForm.test(ext)) throw new Bad();
  if (typeof content_type !== 'string' || !contentTypes.includes(content_type)) throw new Bad();
  if (!Array.isArray(parts) || !parts.every((part) => typeof part === 'string')) throw new Bad();
  return { bytes, sha256, content_type, ext, parts };
}

function readProgress(json: unknown) {
  const { progress, stage, speed_bytes, eta_seconds } = (json ?? {}) as Record<string, unknown>;
  const count = (value: unknown) =>
    typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.round(value) : null;
  const word = typeof stage === 'string' && /^[a-z_ ]{1,40}$/.test(stage) ? stage : '';
  return {
    progress: count(progress) ?? 0,
    stage: word,
    speed_bytes: count(speed_bytes),
    eta_seconds: count(eta_seconds),
  };
}

async function readJson(req: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > jsonBytesMax) throw new Bad();
    chunks.push(chunk);
  }
  return JSON.parse(Buffer.concat(chunks).toString() || '{}');
}
