import { getHistory, getStats, getUsage } from '../api/account-routes.ts';
import { makeAccountTurns } from '../api/account-turns.ts';
import type { ApiHandlers } from '../api/app.ts';
import { deleteBatch, getBatch, startBatch } from '../api/batch-routes.ts';
import { cacheBlocks, findCallers } from '../api/caller-address.ts';
import { type CreditRoutes, getMetadata, startDownload, startRetry } from '../api/credit-routes.ts';
import { sendDocsFile, showPage, showWelcome } from '../api/document-pages.ts';
import { streamEvents } from '../api/event-routes.ts';
import { deliverFile } from '../api/file-routes.ts';
import { deleteJob, getJob, getJobs, type JobRoutes } from '../api/job-routes.ts';
import { makeJobView } from '../api/job-view.ts';
import { makeJobWatches } from '../api/job-watch.ts';
import { answerMcp } from '../api/mcp-routes.ts';
import { makeOpenapi } from '../api/openapi.ts';
import { cacheStats } from '../api/stats-cache.ts';
import type { Shutdown } from '../base/shutdown.ts';
import { traceJob } from '../controller/job-ends.ts';
import { countCancelledJob } from '../controller/job-metrics.ts';
import { makeLink } from '../model/file-link.ts';
import type { Job } from '../model/job.ts';
import { noteStrayProxy } from '../store/access/stray-proxy.ts';
import { readJob } from '../store/jobs/read-job.ts';
import { openRequestLog } from '../store/log/write-lines.ts';
import { type AdmissionGate, watchAdmissions } from '../store/redis/admission-gate.ts';
import type { SharedParts } from './shared.ts';

export interface CallParts extends SharedParts {
  /** A waiting call reads its job again after this time, in case a hint was lost. */
  readonly rereadMs?: number;
  /** A stream whose caller has not read for this time is ended. */
  readonly unreadMs?: number;
}

/** Handlers of calls, with what they share, whether a caller sends the calls to the public API or a person makes them by hand. */
export type CallHandlers = Awaited<ReturnType<typeof openCallHandlers>>;

const defaultRereadMs = 15_000;
const defaultUnreadMs = 60_000;
const strayProxy =
  'a private address forwards requests of others but is not in TRAWL_TRUSTED_PROXIES: it is never blocked';

/** Signals of a process that stops: calls that wait for a job are answered when it drains, inspections end shortly before it does. */
interface StopSignals {
  readonly draining: AbortSignal;
  readonly ending: AbortSignal;
}

/** Opens the handlers of calls, and what they share until `stop` closes it: admissions, request log, blocked addresses. */
export async function openCallHandlers(
  parts: CallParts,
  publicUrl: () => string,
  signals: StopSignals,
  stop: Shutdown,
) {
  const { config, store, metrics, log } = parts;
  const admissions = await watchAdmissions(store.connection, config, metrics, log);
  stop.add('admissions', admissions.close);
  const lines = openRequestLog(store, config.logLines, log);
  stop.add('request log', lines.close, 3);
  const rule = {
    maxFailures: config.authFailures,
    windowMs: config.authWindow * 1000,
    blockMs: config.authBlock * 1000,
  };
  const blocked = await cacheBlocks(store, rule, log);
  stop.add('blocked addresses', blocked.close);
  const findCaller = findCallers(config.trustedProxies, (address) => {
    log.warn(strayProxy);
    void noteStrayProxy(store, address).catch((error) => log.debug('the proxy could not be noted', { error }));
  });
  return { ...makeHandlers(parts, admissions, publicUrl, signals), lines, findCaller, blocked };
}

function makeHandlers(
  parts: CallParts,
  admissions: AdmissionGate,
  publicUrl: () => string,
  { draining, ending }: StopSignals,
) {
  const { config, store, seal, objects, inspector, metrics, traces, log } = parts;
  const { rereadMs = defaultRereadMs, unreadMs = defaultUnreadMs } = parts;
  const { now } = store.clock;
  const stats = cacheStats(store);
  const viewJob = makeJobView({
    now,
    fileHours: config.fileHours,
    linkOf: (job, until) => makeLink(job, until, publicUrl(), seal.sign),
    averageSeconds: stats.averageSeconds,
  });
  const cancelled = (job: Job) => {
    countCancelledJob(metrics, job, now());
    // A job without spans is missing in its trace alone.
    traceJob({ traces, store }, job, null, log);
  };
  const watchJob = makeJobWatches(store, { rereadMs, draining });
  const takeTurn = makeAccountTurns();
  const jobs: JobRoutes = { store, viewJob, watchJob, takeTurn, cancelled, log, unreadMs, draining };
  const { asyncStatus, egressAllow: exceptions, inspectSeconds } = config;
  const inspection = { inspector, inspectSeconds, ending };
  const basePath = new URL(publicUrl()).pathname.replace(/\/$/, '');
  const credit: CreditRoutes = { store, seal, asyncStatus, basePath, exceptions, admissions, ...inspection, metrics };
  const [pollJob, removeJob] = [getJob(jobs), deleteJob(jobs)];
  const [readBatch, endBatch] = [getBatch(jobs), deleteBatch(jobs)];
  const [video, audio] = [startDownload(credit, 'video'), startDownload(credit, 'audio')];
  const [metadata, usage] = [getMetadata(credit), getUsage(store)];
  const handlers: ApiHandlers = {
    video,
    audio,
    metadata,
    mcp: answerMcp({ ...jobs, handlers: { video, audio, metadata, job: pollJob, usage } }),
    retry: startRetry(credit),
    jobs: getJobs(jobs),
    job: (call) => (call.req.method === 'DELETE' ? removeJob(call) : pollJob(call)),
    events: streamEvents(jobs),
    batches: startBatch(credit),
    batch: (call) => (call.req.method === 'DELETE' ? endBatch(call) : readBatch(call)),
    usage,
    history: getHistory(store),
    stats: getStats(store, stats),
    files: deliverFile({ verify: seal.verify, readJob: (jobId) => readJob(store, jobId), objects, now }),
    welcome: showWelcome(publicUrl),
    docs: showPage('api-docs.html'),
    docsFile: sendDocsFile(),
    openapi: async () => ({ status: 200, body: makeOpenapi(publicUrl(), asyncStatus) }),
  };
  return { handlers, viewJob, cancelled };
}
