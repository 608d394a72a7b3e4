import { getStats, getUsage } from '../api/account-routes.ts';
import { type ApiHandlers, makeApp } from '../api/app.ts';
import { cacheBlocks, findCallers } from '../api/caller-address.ts';
import { type CreditRoutes, getMetadata, retryJob, startDownload } from '../api/credit-routes.ts';
import { streamEvents } from '../api/event-routes.ts';
import { deliverFile } from '../api/file-routes.ts';
import { type HttpTimeouts, listen } from '../api/http-server.ts';
import { deleteJob, getJob, getJobs, type JobRoutes } from '../api/job-routes.ts';
import { makeJobView } from '../api/job-view.ts';
import { makeJobWatches } from '../api/job-watch.ts';
import { makeOpenapi } from '../api/openapi.ts';
import { cacheStats } from '../api/stats-cache.ts';
import type { Config } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Seal } from '../base/seal.ts';
import type { Shutdown } from '../base/shutdown.ts';
import { makeLink } from '../model/file-link.ts';
import type { Inspector } from '../model/inspection-result.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { noteStrayProxy } from '../store/access/stray-proxy.ts';
import { readJob } from '../store/jobs/read-job.ts';
import { openRequestLog } from '../store/log/write-lines.ts';
import { watchMemory } from '../store/redis/memory-gate.ts';
import type { RecordStore } from '../store/script.ts';
import { version } from './version.ts';

export interface ApiParts {
  readonly config: Config;
  readonly store: RecordStore;
  readonly seal: Seal;
  readonly objects: ObjectStore;
  readonly inspector: Inspector;
  readonly log: Log;
  readonly metrics: Metrics;
  /** A waiting call reads its job again after this time, in case a hint was lost. */
  readonly rereadMs?: number;
  readonly timeouts?: HttpTimeouts;
}

const drainSeconds = 8;
const defaultRereadMs = 15_000;
const strayProxy =
  'a private address forwards requests of others but is not in TRAWL_TRUSTED_PROXIES: it is never blocked';

/** Serves the public API until it is stopped; returns its port. */
export async function serveApi(parts: ApiParts, stop: Shutdown): Promise<{ port: number; publicUrl: string }> {
  const { config, store, metrics } = parts;
  const log = parts.log.with({ part: 'api' });
  const draining = new AbortController();
  const memoryGate = await watchMemory(store.connection, metrics, log);
  stop.add('memory of redis', memoryGate.close);
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
  const handlers = makeHandlers(parts, memoryGate.isOpen, () => publicUrl, draining.signal);
  const findCaller = findCallers(config.trustedProxies, (address) => {
    log.warn(strayProxy);
    void noteStrayProxy(store, address).catch((error) => log.debug('the proxy could not be noted', { error }));
  });
  const app = makeApp(
    {
      findCaller,
      blocked,
      lines,
      log,
      metrics,
      now: store.clock.now,
      isDraining: () => draining.signal.aborted,
      keyQuotaStatus: config.keyQuotaStatus,
      inHand: 0,
    },
    handlers,
  );
  const server = await listen(app, config.host, config.port, parts.timeouts);
  if (config.port === 0) publicUrl = publicUrl.replace(/:0$/, `:${server.port}`);
  stop.add('public API', async () => {
    draining.abort();
    await server.drain(drainSeconds);
  });
  return { port: server.port, publicUrl };
}

function makeHandlers(
  parts: ApiParts,
  hasMemory: () => boolean,
  publicUrl: () => string,
  draining: AbortSignal,
): ApiHandlers {
  const { config, store, seal, objects, inspector, log, rereadMs = defaultRereadMs } = parts;
  const { now } = store.clock;
  const stats = cacheStats(store);
  const viewJob = makeJobView({
    now,
    fileHours: config.fileHours,
    linkOf: (job, until) => makeLink(job, until, publicUrl(), seal.sign),
    averageSeconds: stats.averageSeconds,
  });
  const jobs: JobRoutes = { store, viewJob, watchJob: makeJobWatches(store, draining), log, rereadMs, draining };
  const { asyncStatus, egressAllow: exceptions, inspectSeconds } = config;
  const credit: CreditRoutes = { store, seal, asyncStatus, exceptions, hasMemory, inspector, inspectSeconds };
  const [pollJob, removeJob] = [getJob(jobs), deleteJob(jobs)];
  return {
    video: startDownload(credit, 'video'),
    audio: startDownload(credit, 'audio'),
    metadata: getMetadata(credit),
    retry: retryJob(credit),
    jobs: getJobs(jobs),
    job: (call) => (call.req.method === 'DELETE' ? removeJob(call) : pollJob(call)),
    events: streamEvents(jobs),
    usage: getUsage(store),
    stats: getStats(store, stats),
    files: deliverFile({ verify: seal.verify, readJob: (jobId) => readJob(store, jobId), objects, now }),
    openapi: async () => ({ status: 200, body: makeOpenapi(version, publicUrl()) }),
  };
}
