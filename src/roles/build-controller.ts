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

/** The runner of the workers, and the attempt that each of their tokens stands for. */
export interface Workers {
  readonly runner: Runner;
  /** Returns the attempt of a worker's token, `null` for a token of none or of one that is over. */
  readonly attemptOf: (token: string) => Promise<AttemptId | null>;
}

/** Begins to run workers. */
export type OpenWorkers = () => Promise<Workers>;

/** The parts of a controller that depend on the role. */
export interface ControllerParts {
  readonly config: Config;
  readonly store: RecordStore;
  readonly seal: Seal;
  readonly objects: ObjectStore;
  readonly inspector: Inspector;
  /** Returns a signed link to a job's file, `null` when it has none. */
  readonly linkOf: (job: Job) => string | null;
  readonly openWorkers: OpenWorkers;
  /** Lets the gateway listen; returns how to end it. */
  readonly listen: (server: Server) => Promise<() => Promise<void>>;
  /** The proxy through which webhooks are sent. */
  readonly egress: ServerAddress;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly times?: Partial<ControllerTimes>;
}

const hourMs = 3_600_000;
const maxInterruptions = 10;

/** Starts a controller with its workers, their gateway and its upkeep; all of it is released in reverse order. */
export async function buildController(parts: ControllerParts, stop: Shutdown): Promise<Controller> {
  const { config, store, objects, inspector, metrics } = parts;
  const { runner, attemptOf } = await parts.openWorkers();
  stop.add('workers', runner.close, 8);
  stop.add('gateway', await parts.listen(openGateway(parts, attemptOf)));
  const metadataRunner = openMetadataRunner(
    inspector,
    (jobId) => readJob(store, jobId),
    config.inspectSeconds,
    logOf(parts, 'metadata runner'),
  );
  const controller = await startController({
    ...{ store, objects, metrics, limits: limitsOf(config), log: logOf(parts, 'controller') },
    slots: config.workers,
    runners: [runner, metadataRunner],
    runnerOf: (job) => (job.endpoint === 'metadata' ? metadataRunner : runner),
    ...(parts.times && { times: parts.times }),
  });
  stop.add('controller', () => controller.close(), 12);
  await startWebhooks(parts, stop);
  startUpkeep(parts, controller, stop);
  return controller;
}

function openGateway(parts: ControllerParts, attemptOf: Workers['attemptOf']): Server {
  const { config, store, objects } = parts;
  const { maxFileBytes, inspectSeconds } = config;
  const log = logOf(parts, 'gateway');
  const cookiesOf = (url: unknown) => readCookies(config.cookies, url, log);
  return makeWorkerGateway({ store, objects, log, attemptOf, maxFileBytes, inspectSeconds, cookiesOf });
}

/** Every controller delivers webhooks, leading or not. */
async function startWebhooks(parts: ControllerParts, stop: Shutdown): Promise<void> {
  const { config, store, seal, metrics, linkOf, egress } = parts;
  const delivery = deliverWebhooks({
    ...{ store, seal, metrics, linkOf, log: logOf(parts, 'webhooks') },
    proxy: egress,
    limitSeconds: config.webhookSeconds,
    gapSeconds: config.webhookGapSeconds,
    drainSeconds: 2,
  });
  stop.add('webhooks', delivery.close, 5);
  stop.add('hints for webhooks', await store.connection.subscribe(channels.webhooks, delivery.wake));
}

/** Starts the sweeper and the gauges, which work in the leading controller alone. */
function startUpkeep(parts: ControllerParts, controller: Controller, stop: Shutdown): void {
  const { config, store, objects, metrics } = parts;
  const leading = { store, isLeading: () => controller.isLeading() };
  const lifetimes = {
    job: config.jobDays * 24 * hourMs,
    line: config.logDays * 24 * hourMs,
    file: config.fileHours * hourMs,
  };
  const sweeper = startSweeper({ ...leading, objects, lifetimes, log: logOf(parts, 'sweeper') });
  stop.add('sweeper', sweeper.close, 3);
  const oldestUnsettled = () => controller.oldestUnsettled();
  const gauges = startGauges({ ...leading, metrics, oldestUnsettled, log: logOf(parts, 'gauges') });
  stop.add('gauges', gauges.close, 3);
}

function limitsOf(config: Config): JobLimits {
  return {
    maxAttempts: config.attempts,
    maxInterruptions,
    maxQueueMs: config.queueHours * hourMs,
    maxStoringMs: 24 * hourMs,
    maxAttemptMs: config.jobSeconds * 1000,
  };
}

function logOf({ log }: ControllerParts, part: string): Log {
  return log.with({ part });
}
