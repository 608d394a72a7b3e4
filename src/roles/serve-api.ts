import { readFileSync } from 'node:fs';
import { tellStats, tellUsage } from '../api/account-routes.ts';
import { type Handlers, makeApp } from '../api/app.ts';
import { mirrorBlocks } from '../api/blocked-addresses.ts';
import { findPeers } from '../api/caller-address.ts';
import { type Credit, retryJob, startDownload, tellMetadata } from '../api/credit-routes.ts';
import { streamEvents } from '../api/event-routes.ts';
import { deliverFile } from '../api/file-routes.ts';
import { listen, type Patience } from '../api/http-server.ts';
import { type JobRoutes, list, poll, remove } from '../api/job-routes.ts';
import { makeShow } from '../api/job-view.ts';
import { makeWatches } from '../api/job-watch.ts';
import { rememberKeys } from '../api/keys.ts';
import { makeOpenapi } from '../api/openapi.ts';
import { cacheMinutes } from '../api/stats-cache.ts';
import type { Config } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Seal } from '../base/seal.ts';
import type { Stop } from '../base/shutdown.ts';
import { makeLink } from '../model/file-link.ts';
import type { Inspector } from '../model/inspection-result.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { noteStrayProxy } from '../store/access/stray-proxy.ts';
import { readJob } from '../store/jobs/read-job.ts';
import { collectLines } from '../store/log/write-lines.ts';
import { watchRoom } from '../store/redis/memory-gate.ts';
import type { RecordStore } from '../store/script.ts';

/** What the API is built from. */
export interface ApiParts {
  readonly config: Config;
  readonly store: RecordStore;
  readonly seal: Seal;
  readonly objects: ObjectStore;
  readonly inspector: Inspector;
  readonly log: Log;
  readonly metrics: Metrics;
  /** After this time who waits for a job looks again, in case a hint was lost. */
  readonly rereadMilliseconds?: number;
  /** How long callers may take, when it is not as usual. */
  readonly patience?: Patience;
}

const drainSeconds = 8;
const rereadMilliseconds = 15_000;
const strayProxy =
  'a private address forwards requests of others but is not in TRAWL_TRUSTED_PROXIES: it is never blocked';
const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/** Serves the public API until it is stopped; answers its port. */
export async function serveApi(parts: ApiParts, stop: Stop): Promise<{ port: number; publicUrl: string }> {
  const { config, store, log, metrics } = parts;
  const draining = new AbortController();
  const room = await watchRoom(store.connection, metrics, log);
  stop.add('memory of redis', room.close);
  const lines = collectLines(store, config.logLines, log);
  stop.add('request log', lines.close, 3);
  const rule = {
    most: config.authFailures,
    windowMilliseconds: config.authWindow * 1000,
    blockMilliseconds: config.authBlock * 1000,
  };
  const blocked = await mirrorBlocks(store, rule, log);
  stop.add('blocked addresses', blocked.close);
  let publicUrl = config.publicUrl;
  const handlers = handle(parts, room.has, () => publicUrl, draining.signal);
  const gate = {
    blocked,
    readKey: rememberKeys(),
    peerOf: findPeers(config.trustedProxies, (address) => {
      log.warn(strayProxy);
      void noteStrayProxy(store, address).catch((error) => log.debug('the proxy could not be noted', { error }));
    }),
    lines,
    log,
    metrics,
    now: store.clock.now,
    isDraining: () => draining.signal.aborted,
  };
  const server = await listen(makeApp(gate, handlers), config.host, config.port, parts.patience);
  if (config.port === 0) publicUrl = publicUrl.replace(/:0$/, `:${server.port}`);
  stop.add('public API', async () => {
    draining.abort();
    await server.drain(drainSeconds);
  });
  return { port: server.port, publicUrl };
}

function handle(parts: ApiParts, hasRoom: () => boolean, publicUrl: () => string, draining: AbortSignal): Handlers {
  const { config, store, seal, objects, inspector } = parts;
  const { now } = store.clock;
  const statuses = { accepted: config.asyncStatus, keyQuota: config.keyQuotaStatus };
  const minutes = cacheMinutes(store);
  const show = makeShow({
    now,
    fileMilliseconds: config.fileHours * 3_600_000,
    linkOf: (job, until) => makeLink(job, until, publicUrl(), seal.sign),
    averageSeconds: minutes.averageSeconds,
  });
  const jobs: JobRoutes = {
    store,
    statuses,
    show,
    watch: makeWatches(store, draining),
    log: parts.log,
    rereadMilliseconds: parts.rereadMilliseconds ?? rereadMilliseconds,
    draining,
  };
  const credit: Credit = {
    store,
    seal,
    statuses,
    exceptions: config.egressAllow,
    hasRoom,
    inspector,
    inspectSeconds: config.inspectSeconds,
  };
  const [pollJob, removeJob] = [poll(jobs), remove(jobs)];
  return {
    video: startDownload(credit, 'video'),
    audio: startDownload(credit, 'audio'),
    metadata: tellMetadata(credit),
    retry: retryJob(credit),
    jobs: list(jobs),
    job: (ask) => (ask.req.method === 'DELETE' ? removeJob(ask) : pollJob(ask)),
    events: streamEvents(jobs),
    usage: tellUsage(store, statuses),
    stats: tellStats(store, statuses, minutes.read),
    files: deliverFile({ verify: seal.verify, readJob: (id) => readJob(store, id), objects, now }),
    openapi: async () => ({ status: 200, body: makeOpenapi(version, publicUrl()) }),
  };
}
