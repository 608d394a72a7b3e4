import type { Server } from 'node:http';
import type { Config } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Seal } from '../base/seal.ts';
import type { ServerAddress } from '../base/server-address.ts';
import type { Shutdown } from '../base/shutdown.ts';
import { type Controller, type ControllerTimes, startController } from '../controller/controller.ts';
import { readCookies } from '../controller/cookies.ts';
import { startGauges } from '../controller/gauges.ts';
import { openMetadataRunner } from '../controller/metadata-runner.ts';
import { startSweeper } from '../controller/sweeper.ts';
import { makeWorkerGateway } from '../controller/worker-gateway.ts';
import type { Inspector } from '../model/inspection-result.ts';
import type { Job } from '../model/job.ts';
import type { JobLimits } from '../model/next.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import type { AttemptId, Runner } from '../runners/runner.ts';
import { readJob } from '../store/jobs/read-job.ts';
import { channels } from '../store/keys.ts';
import type { RecordStore } from '../store/script.ts';
import { deliverWebhooks } from '../webhooks/deliver-webhooks.ts';

/** Where workers run, and who they are. */
export interface Workers {
  readonly runner: Runner;
  /** The attempt that the token of a worker is good for; `null` when it is for none, or not any more. */
  readonly attemptOf: (token: string) => Promise<AttemptId | null>;
}

/** Begins to run workers. */
export type OpenWorkers = () => Promise<Workers>;

/** What a controller is built from. */
export interface ControllerParts {
  readonly config: Config;
  readonly store: RecordStore;
  readonly seal: Seal;
  readonly objects: ObjectStore;
  readonly inspector: Inspector;
  /** A signed link to a job's file, `null` when it has none. */
  readonly linkOf: (job: Job) => string | null;
  readonly openWorkers: OpenWorkers;
  /** Lets the gateway listen; answers how to end it. */
  readonly listen: (server: Server) => Promise<() => Promise<void>>;
  /** The way out, for webhooks. */
  readonly egress: ServerAddress;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly times?: Partial<ControllerTimes>;
}

const hour = 3_600_000;
const maxInterruptions = 10;

/** Starts a controller with its gateway, workers and sweeps; released in reverse. */
export async function buildController(parts: ControllerParts, stop: Shutdown): Promise<Controller> {
  const { config, store, seal, objects, inspector, log, metrics } = parts;
  const limits: JobLimits = {
    maxAttempts: config.attempts,
    maxInterruptions: maxInterruptions,
    maxQueueMs: config.queueHours * hour,
    maxStoringMs: 24 * hour,
    maxAttemptMs: config.jobSeconds * 1000,
  };
  const { runner, attemptOf } = await parts.openWorkers();
  stop.add('workers', runner.close, 8);
  const { maxFileBytes, inspectSeconds } = config;
  const cookiesOf = (url: unknown) => readCookies(config.cookies, url, log);
  const gateway = makeWorkerGateway({ store, objects, log, attemptOf, maxFileBytes, inspectSeconds, cookiesOf });
  stop.add('gateway', await parts.listen(gateway));
  const inspections = openMetadataRunner(inspector, (id) => readJob(store, id), config.inspectSeconds, log);
  const controller = await startController({
    ...{ store, limits, objects, metrics, log, slots: config.workers, runners: [runner, inspections] },
    runnerOf: (job) => (job.endpoint === 'metadata' ? inspections : runner),
    ...(parts.times && { times: parts.times }),
  });
  stop.add('controller', () => controller.close(), 12);
  const leading = { store, isLeading: () => controller.isLeading(), log };
  const lifetimes = {
    job: config.jobDays * 24 * hour,
    line: config.logDays * 24 * hour,
    file: config.fileHours * hour,
  };
  const sweep = startSweeper({ ...leading, objects, lifetimes });
  stop.add('sweep', sweep.close, 3);
  const deliveries = deliverWebhooks({
    ...{ store, seal, metrics, log, linkOf: parts.linkOf },
    proxy: parts.egress,
    limitSeconds: config.webhookSeconds,
    gapSeconds: config.webhookGapSeconds,
    drainSeconds: 2,
  });
  stop.add('webhooks', deliveries.close, 5);
  stop.add('hints for webhooks', await store.connection.subscribe(channels.webhooks, deliveries.wake));
  const gauges = startGauges({ ...leading, metrics, oldestUnsettled: () => controller.oldestUnsettled() });
  stop.add('gauges', gauges.close, 3);
  return controller;
}
