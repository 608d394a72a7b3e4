import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { CountsByName } from '../base/counts.ts';
import { failures, Refusal, refusals } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { onceAMinute } from '../base/once-a-minute.ts';
import { membersOf } from '../base/parse-json.ts';
import { readBody } from '../base/read-body.ts';
import { maxClientConnections } from '../base/resource-limits.ts';
import { type CertificateFiles, makeHttpServer } from '../base/server-certificate.ts';
import {
  type AttemptProgress,
  type AttemptSpec,
  readProgress,
  readUpload,
  type UploadPermit,
} from '../model/attempt-protocol.ts';
import { readStageTimes } from '../model/attempt-stages.ts';
import { isEnded, type Job } from '../model/job.ts';
import { attemptMsOf, hasOpenAttempt } from '../model/next.ts';
import { objectPrefix, readDetail, readVerdict } from '../model/outcome.ts';
import type { Args } from '../model/request-parameters.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import type { AttemptId } from '../runners/runner.ts';
import { readRestoredAt } from '../store/backup/backup-notes.ts';
import { readJob } from '../store/jobs/read-job.ts';
import { recordVerdict } from '../store/jobs/record-verdict.ts';
import { readRedisTime } from '../store/old-entries.ts';
import type { RecordStore } from '../store/script.ts';
import { makeProgressNotes } from './progress-notes.ts';

interface WorkerGatewayOptions {
  readonly store: RecordStore;
  /** Returns `null` for an unknown token or an attempt that is over. */
  readonly attemptOf: (token: string) => Promise<AttemptId | null>;
  readonly objects: Pick<ObjectStore, 'partBytes' | 'permit' | 'receive'>;
  readonly maxFileBytes: number;
  readonly maxAttemptMs: number;
  readonly inspectSeconds: number;
  readonly cookiesOf: (url: unknown) => Promise<string | null>;
  readonly log: Log;
  /** Without these files it speaks no TLS. */
  readonly certificate?: CertificateFiles | null;
  /** Pause between two signs of life to a worker that waits for an answer. */
  readonly aliveMs?: number;
}

type GatewayRoute = (caller: AttemptId, req: IncomingMessage) => Promise<object | null>;

const maxJsonBytes = 64 * 1024;
/** A worker gives up a connection on which nothing moves for 30 s, and a disk may take longer to make a large file durable. */
const defaultAliveMs = 10_000;
/**
 * Node would cut off a file that takes more than 300 s; the deadline of an attempt ends a worker that sends no more. Without that limit Node
 * has none for the head of a request either.
 */
const timeouts = { requestTimeout: 0, headersTimeout: 60_000 };
/** Progress of an attempt whose worker has not reported yet. */
const beginning: AttemptProgress = {
  ...{ progress: 0, stage: 'inspect', speed_bytes: null, eta_seconds: null },
  stages: [{ stage: 'inspect', ms: 0 }],
};

/** The only server that workers reach. 410: the attempt is over. Stateless, so each call of a worker may reach another controller. */
export function makeWorkerGateway(options: WorkerGatewayOptions): Server {
  const { attemptOf, log, certificate: files = null, aliveMs = defaultAliveMs } = options;
  const routes = makeRoutes(options);
  const complain = makeUploadComplaint(log);
  const serve = async (req: IncomingMessage, res: ServerResponse) => {
    const route = routes[`${req.method} ${req.url}`];
    const [, token] = /^Bearer (\S{1,4096})$/.exec(req.headers.authorization ?? '') ?? [];
    const caller = token === undefined ? null : await attemptOf(token);
    if (caller === null) return answer(res, 401, null);
    if (route === undefined) return answer(res, 404, null);
    const alive = setInterval(() => res.writeProcessing(), aliveMs);
    const said = await route(caller, req)
      .catch((error: unknown) => {
        complain(req, caller, error);
        throw error;
      })
      .finally(() => clearInterval(alive));
    answer(res, 200, said);
  };
  const server = makeHttpServer(files && { files, log }, timeouts, (req, res) => {
    serve(req, res).catch((error: unknown) => {
      const status = statusOf(error);
      // A worker that has left in the middle of its request gets no answer, and needs none.
      if (status === 500 && req.errored === null) log.error('the gateway could not answer a worker', { error });
      answer(res, status, null);
    });
  });
  limitConnections(server, log);
  return server;
}

/**
 * Closes what one address opens beyond its connections: each may hold a body of 64 KiB, and a pod that was taken over has 28,000
 * ports for them, but must not use up the memory of the controller. A UNIX socket has no address.
 */
function limitConnections(server: Server, log: Log): void {
  const counts = new CountsByName();
  const complain = onceAMinute((address: string) =>
    log.warn(`an address has ${maxClientConnections} connections to the gateway: more are closed`, { address }),
  );
  server.on('connection', (socket: Socket) => {
    const { remoteAddress: client } = socket;
    if (client === undefined) return;
    if (counts.of(client) >= maxClientConnections) {
      socket.destroy();
      return complain(client);
    }
    counts.change(client, 1);
    socket.once('close', () => counts.change(client, -1));
  });
}

/** Returns what logs an upload that the object store refuses: the worker tries again, and its verdict does not name the cause. */
function makeUploadComplaint(log: Log): (req: IncomingMessage, caller: AttemptId, error: unknown) => void {
  const complain = onceAMinute(({ jobId, attempt }: AttemptId, error: Refusal) =>
    log.warn('a file could not be stored: its worker tries again', { job: jobId, attempt, error }),
  );
  return (req, caller, error) => {
    const isUpload = req.method === 'PUT' || req.url === '/v1/attempt/permit';
    if (isUpload && error instanceof Refusal) complain(caller, error);
  };
}

function makeRoutes(options: WorkerGatewayOptions): Readonly<Record<string, GatewayRoute>> {
  const { store } = options;
  const notes = makeProgressNotes(store, options.maxAttemptMs);
  const uploads = makeUploads(options);
  return {
    'GET /v1/attempt': async (caller) => {
      const job = await readOpenAttempt(store, caller);
      if (job.unreadable) throw new Bad();
      await notes.report(job, beginning);
      return specOf(job, options);
    },
    'POST /v1/attempt/progress': async (caller, req) => {
      const job = notes.jobOf(caller.jobId, caller.attempt) ?? (await readOpenAttempt(store, caller));
      const progress = orBad(readProgress(await readJson(req)));
      if (!(await notes.report(job, progress))) throw new Gone();
      return null;
    },
    'POST /v1/attempt/permit': async (caller, req) => {
      const job = await readOpenAttempt(store, caller);
      const permitted = await uploads.permit(job, await readJson(req));
      const whole: UploadPermit = { key: permitted.key, parts: null, through_egress: false };
      return permitted.is === 'parts' ? permitted : whole;
    },
    'PUT /v1/attempt/object': async (caller, req) => {
      const checksum = await uploads.receive(await readOpenAttempt(store, caller), req);
      if (checksum !== req.headers['x-sha256']) throw new Bad();
      return null;
    },
    'POST /v1/attempt/verdict': async (caller, req) => {
      const { jobId, attempt } = caller;
      notes.forget(jobId, attempt);
      const said = await readJson(req);
      const verdict = readVerdict(said) ?? { is: 'failed', code: 'worker_failed' };
      const code = verdict.is === 'failed' && failures[verdict.code].blame === 'us' ? verdict.code : null;
      const detail = code === null ? '' : readDetail(said);
      // A worker that was taken over may tell any number of verdicts.
      const isFirst = detail !== '' && (await readOpenAttempt(store, caller)).verdict === null;
      // Stages never decide anything: a worker that says nonsense of them has none.
      const stages = readStageTimes(membersOf(said).stages) ?? [];
      const recorded = await recordVerdict(store, jobId, attempt, verdict, stages);
      if (recorded.refused) throw new Gone();
      // The log of a worker goes with its pod.
      if (isFirst) options.log.info('an attempt failed through our fault', { job: jobId, attempt, code, detail });
      return null;
    },
  };
}

/** One upload of an attempt goes on at a time: a worker that was taken over must not keep hundreds of the largest size. */
function makeUploads({ store, objects, maxFileBytes }: WorkerGatewayOptions) {
  const permits = new Map<string, Promise<unknown>>();
  const arriving = new Map<string, IncomingMessage>();
  // A restored record begins attempts anew that had uploaded a file, or a part of it. No clock of a rehearsal moves the time of a file.
  const readBefore = async () => (await readRestoredAt(store)) - store.clock.offset();
  const permit = async ({ id, attempt }: Job, json: unknown) => {
    const { ext, ...upload } = orBad(readUpload(json));
    if (upload.bytes > maxFileBytes) throw new Bad();
    const prefix = objectPrefix(id, attempt);
    const begin = async () => objects.permit(`${prefix}media.${ext}`, upload, await readBefore());
    // Permits that are given at once would each begin an upload of their own.
    const permitted = (permits.get(prefix) ?? Promise.resolve()).then(begin, begin);
    return keepLast(permits, prefix, permitted, permitted);
  };
  const receive = async (job: Job, req: IncomingMessage) => {
    const permitted = await permit(job, readHeaders(req));
    if (permitted.is === 'parts') throw new Bad();
    const before = await readBefore();
    const prefix = objectPrefix(job.id, job.attempt);
    // A worker sends its file again when the connection of the upload before is lost.
    arriving.get(prefix)?.destroy(new Gone());
    const { checksum } = await keepLast(arriving, prefix, req, objects.receive(permitted, req, before));
    return checksum;
  };
  return { permit, receive };
}

/** Keeps a value under its key until the work ends, unless a later one takes its place. */
async function keepLast<V, T>(values: Map<string, V>, key: string, value: V, work: Promise<T>): Promise<T> {
  values.set(key, value);
  try {
    return await work;
  } finally {
    if (values.get(key) === value) values.delete(key);
  }
}

async function readOpenAttempt(store: RecordStore, { jobId, attempt }: AttemptId): Promise<Job> {
  const job = await readJob(store, jobId);
  if (job === null || isEnded(job.status) || job.attempt !== attempt || !hasOpenAttempt(job)) throw new Gone();
  return job;
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

async function specOf(job: Job, options: WorkerGatewayOptions): Promise<AttemptSpec> {
  const { objects, maxFileBytes, inspectSeconds } = options;
  const seconds = Math.max(1, Math.floor((await leftMs(job, options)) / 1000));
  const limits = { file_bytes: maxFileBytes, seconds, inspect_seconds: inspectSeconds };
  const { id, attempt, endpoint, args } = job;
  const cookies = await options.cookiesOf(args.query);
  return { job: id, attempt, endpoint, args: args as Args, limits, part_bytes: objects.partBytes, cookies };
}

/** A worker that asks sooner after its start than this pays for no reading of TIME. */
const soonMs = 60_000;

/**
 * A worker that asks first has the time of a whole attempt. So it has after a jump of the clock: a deadline that was set before says nothing. One that
 * has less, because it is late, or because the clock went back since it was read, gets what is left by TIME of this moment.
 */
async function leftMs(job: Job, { store, maxAttemptMs }: WorkerGatewayOptions): Promise<number> {
  const wholeMs = attemptMsOf(job, { maxAttemptMs });
  const { deadline } = job;
  if (deadline === null || !store.connection.clock.isSteady()) return wholeMs;
  const leftAt = (now: number) => Math.min(deadline - now, wholeMs);
  const left = leftAt(store.clock.now());
  return left > wholeMs - soonMs ? left : leftAt(await readRedisTime(store));
}

/** A file that is sent whole has its upload request in the headers. */
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
