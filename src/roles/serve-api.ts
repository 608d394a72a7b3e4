import { makeApp } from '../api/app.ts';
import { type HttpTimeouts, listen } from '../api/http-server.ts';
import { limitKeylessRequests } from '../api/keyless-limit.ts';
import { warnOfParts } from '../api/part-warnings.ts';
import type { PendingLimit } from '../api/unread-answers.ts';
import type { ConfigRule } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { onceAMinute } from '../base/once-a-minute.ts';
import type { Shutdown } from '../base/shutdown.ts';
import { type CallParts, openCallHandlers } from './call-handlers.ts';
import { serveDashboard } from './serve-dashboard.ts';

export interface ApiParts extends CallParts {
  readonly timeouts?: HttpTimeouts;
  /** Calls in hand may end for so long when the API stops; `trawl up` is to be gone within 20 s. */
  readonly drainSeconds?: number;
  /** Connections without a request are kept for so long of it, and answers ask their callers to close them; 0 unless given. */
  readonly idleSeconds?: number;
}

/** A second use of a port would be blamed on another program. */
export const needsOwnPorts: ConfigRule = {
  broken({ port, dashboardPort, probePort }) {
    // 0 is any free port.
    const wanted = [port, dashboardPort, probePort].filter(Boolean);
    return new Set(wanted).size < wanted.length;
  },
  sentence: 'TRAWL_PORT, TRAWL_DASHBOARD_PORT and TRAWL_PROBE_PORT must differ: one process opens all of them.',
};

const defaultDrainSeconds = 8;
/** Before connections are cut, for the answers of calls that have not ended. */
const answerSeconds = 1;
const idleRequests =
  'an address has more than 100 connections without a complete request, 1,000 idle ones, or 64 MiB of answers that it does not read: the oldest are closed; a proxy belongs in TRAWL_TRUSTED_PROXIES';

/**
 * Serves the public API and, at a port of its own unless that runs apart, the dashboard until they are stopped; returns where they answer:
 * `dashboardPort` is `null` where the dashboard runs apart.
 */
export async function serveApi(parts: ApiParts, stop: Shutdown) {
  const { config, store, metrics, traces } = parts;
  const log = parts.log.with({ part: 'api' });
  const [draining, ending] = [new AbortController(), new AbortController()];
  const drainSeconds = parts.drainSeconds ?? defaultDrainSeconds;
  let publicUrl = config.publicUrl;
  const calls = await openCallHandlers(
    { ...parts, log },
    () => publicUrl,
    { draining: draining.signal, ending: ending.signal },
    stop,
  );
  const { handlers, lines, findCaller, blocked } = calls;
  const app = makeApp(
    {
      findCaller,
      blocked,
      limitKeyless: limitKeylessRequests(findCaller),
      lines,
      log,
      warnOfPart: warnOfParts(log),
      metrics,
      traces,
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
    const end = setTimeout(() => ending.abort(), (drainSeconds - answerSeconds) * 1000);
    await server.drain(drainSeconds, parts.idleSeconds);
    clearTimeout(end);
  });
  const { dashboardPort, dashboardUrl } = config;
  const dashboard =
    dashboardPort === null
      ? { dashboardPort, dashboardUrl }
      : await serveDashboard({ ...parts, ...calls, port: dashboardPort }, stop);
  return { port: server.port, publicUrl, ...dashboard };
}

/** Counts connections that were closed because their address has too many; warns at most once a minute. */
function noteDrops(metrics: Metrics, log: Log): PendingLimit['onDrop'] {
  const warn = onceAMinute((address: string) => log.warn(idleRequests, { address }));
  return (address) => {
    metrics.connections_dropped_total.inc();
    warn(address);
  };
}
