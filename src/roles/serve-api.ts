import { getHistory, getStats, getUsage } from '../api/account-routes.ts';
import { type ApiHandlers, makeApp } from '../api/app.ts';
import { deleteBatch, getBatch, startBatch } from '../api/batch-routes.ts';
import { cacheBlocks, findCallers } from '../api/caller-address.ts';
import { type CreditRoutes, getMetadata, startDownload, startRetry } from '../api/credit-routes.ts';
import { sendDocsFile, showDocs, showWelcome } from '../api/document-pages.ts';
import { streamEvents } from '../api/event-routes.ts';
import { deliverFile } from '../api/file-routes.ts';
import { type HttpTimeouts, listen, type PendingLimit } from '../api/http-server.ts';
import { deleteJob, getJob, getJobs, type JobRoutes } from '../api/job-routes.ts';
import { makeJobView, type ViewJob } from '../api/job-view.ts';
import { makeJobWatches } from '../api/job-watch.ts';
import { answerMcp } from '../api/mcp-routes.ts';
import { limitOpenRequests } from '../api/open-limit.ts';
import { makeOpenapi } from '../api/openapi.ts';
import { cacheStats } from '../api/stats-cache.ts';
import { readJsonLines } from '../archive/json-lines.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Shutdown } from '../base/shutdown.ts';
import { version } from '../base/version.ts';
import { countCancelledJob } from '../controller/job-metrics.ts';
import { makeCallByHand } from '../dashboard/call-by-hand.ts';
import { makeLink } from '../model/file-link.ts';
import type { Job } from '../model/job.ts';
import { noteStrayProxy } from '../store/access/stray-proxy.ts';
import { readJob } from '../store/jobs/read-job.ts';
import { openRequestLog } from '../store/log/write-lines.ts';
import { type AdmissionGate, watchAdmissions } from '../store/redis/admission-gate.ts';
import { watchMemory } from '../store/redis/memory-gate.ts';
import { serveDashboard } from './serve-dashboard.ts';
import type { SharedParts } from './shared.ts';

export interface ApiParts extends SharedParts {
  /** A waiting call reads its job again after this time, in case a hint was lost. */
  readonly rereadMs?: number;
  /** A stream whose caller has not read for this time is ended. */
  readonly unreadMs?: number;
  readonly timeouts?: HttpTimeouts;
}

const drainSeconds = 8;
const defaultRereadMs = 15_000;
const defaultUnreadMs = 60_000;
const warnEveryMs = 60_000;
const idleRequests =
  'an address has more than 100 connections without a complete request, or 1,000 idle ones: the oldest are closed; a proxy belongs in TRAWL_TRUSTED_PROXIES';
const strayProxy =
  'a private address forwards requests of others but is not in TRAWL_TRUSTED_PROXIES: it is never blocked';

/** Where the public API and the dashboard answer. */
export interface ServedApi {
  readonly port: number;
  readonly publicUrl: string;
  readonly dashboardPort: number;
  readonly dashboardUrl: string;
}

/** Serves the public API and, at a port of its own, the dashboard until they are stopped. */
export async function serveApi(parts: ApiParts, stop: Shutdown): Promise<ServedApi> {
  const { config, store, metrics } = parts;
  const log = parts.log.with({ part: 'api' });
  const draining = new AbortController();
  const memory = await watchMemory(store.connection, config.redisMemory, metrics, log);
  stop.add('memory of redis', memory.close);
  const admissions = watchAdmissions(store.connection, memory, config.durability, metrics, log);
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
  let publicUrl = config.publicUrl;
  const { handlers, viewJob, cancelled } = makeHandlers(parts, admissions, () => publicUrl, draining.signal);
  const findCaller = findCallers(config.trustedProxies, (address) => {
    log.warn(strayProxy);
    void noteStrayProxy(store, address).catch((error) => log.debug('the proxy could not be noted', { error }));
  });
  const app = makeApp(
    {
      findCaller,
      blocked,
      limitOpen: limitOpenRequests(findCaller),
      lines,
      log,
      metrics,
      now: store.clock.now,
      draining: draining.signal,
      keyQuotaStatus: config.keyQuotaStatus,
      inHand: 0,
    },
    handlers,
  );
  const pending = {
    addressOf: (peer: string | undefined) => findCaller(peer, undefined).blame,
    onDrop: noteDrops(metrics, log),
  };
  const server = await listen(app, config.host, config.port, pending, parts.timeouts);
  if (config.port === 0) publicUrl = publicUrl.replace(/:0$/, `:${server.port}`);
  stop.add('public API', async () => {
    draining.abort();
    await server.drain(drainSeconds);
  });
  const callByHand = makeCallByHand({ store, handlers, lines, findCaller });
  const share = { ...parts, findCaller, blocked, viewJob, cancelled, callByHand };
  return { port: server.port, publicUrl, ...(await serveDashboard(share, stop)) };
}

/** Counts connections that were closed because their address has too many; warns at most once a minute. */
function noteDrops(metrics: Metrics, log: Log): PendingLimit['onDrop'] {
  let quietUntil = 0;
  return (address) => {
    metrics.connections_dropped_total.inc();
    if (performance.now() < quietUntil) return;
    quietUntil = performance.now() + warnEveryMs;
    log.warn(idleRequests, { address });
  };
}

function makeHandlers(
  parts: ApiParts,
  admissions: AdmissionGate,
  publicUrl: () => string,
  draining: AbortSignal,
): { handlers: ApiHandlers; viewJob: ViewJob; cancelled: (job: Job) => void } {
  const { config, store, seal, objects, inspector, metrics, log } = parts;
  const { rereadMs = defaultRereadMs, unreadMs = defaultUnreadMs } = parts;
  const { now } = store.clock;
  const stats = cacheStats(store);
  const viewJob = makeJobView({
    now,
    fileHours: config.fileHours,
    linkOf: (job, until) => makeLink(job, until, publicUrl(), seal.sign),
    averageSeconds: stats.averageSeconds,
  });
  const cancelled = (job: Job) => countCancelledJob(metrics, job, now());
  const watchJob = makeJobWatches(store, { rereadMs, draining });
  const jobs: JobRoutes = { store, viewJob, watchJob, cancelled, log, unreadMs, draining };
  const { asyncStatus, egressAllow: exceptions, inspectSeconds } = config;
  const credit: CreditRoutes = { store, seal, asyncStatus, exceptions, admissions, inspector, inspectSeconds };
  const [pollJob, removeJob] = [getJob(jobs), deleteJob(jobs)];
  const [readBatch, endBatch] = [getBatch(store), deleteBatch(jobs)];
  const [video, audio] = [startDownload(credit, 'video'), startDownload(credit, 'audio')];
  const [metadata, usage] = [getMetadata(credit), getUsage(store)];
  const handlers: ApiHandlers = {
    video,
    audio,
    metadata,
    mcp: answerMcp({ ...jobs, version, handlers: { video, audio, metadata, job: pollJob, usage } }),
    retry: startRetry(credit),
    jobs: getJobs(jobs),
    job: (call) => (call.req.method === 'DELETE' ? removeJob(call) : pollJob(call)),
    events: streamEvents(jobs),
    batches: startBatch(credit),
    batch: (call) => (call.req.method === 'DELETE' ? endBatch(call) : readBatch(call)),
    usage,
    history: getHistory(store, (object) => readJsonLines(objects, object)),
    stats: getStats(store, stats),
    files: deliverFile({ verify: seal.verify, readJob: (jobId) => readJob(store, jobId), objects, now }),
    welcome: showWelcome(publicUrl),
    docs: showDocs(),
    docsFile: sendDocsFile(),
    openapi: async () => ({ status: 200, body: makeOpenapi(version, publicUrl()) }),
  };
  return { handlers, viewJob, cancelled };
}
