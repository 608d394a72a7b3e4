import { join } from 'node:path';
import type { Config } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Seal } from '../base/seal.ts';
import type { Stop } from '../base/stop.ts';
import { type Controller, startController } from '../controller/controller.ts';
import { startDeliveries } from '../controller/deliver.ts';
import { makeGateway } from '../controller/gateway.ts';
import { startGauges } from '../controller/gauges.ts';
import { runInspections } from '../controller/inspections.ts';
import { startSweep } from '../controller/sweep.ts';
import { makeToken } from '../controller/tokens.ts';
import type { Inspector } from '../model/inspected.ts';
import type { Job } from '../model/job.ts';
import type { Limits } from '../model/next.ts';
import type { ObjectStore } from '../objects/objects.ts';
import { openProcessRunner } from '../runners/process.ts';
import { readJob } from '../store/jobs.ts';
import { channels } from '../store/keys.ts';
import type { Store } from '../store/script.ts';
import { listenAt } from './socket.ts';

/** What the controller of one machine is built from. */
export interface WorkParts {
  readonly config: Config;
  readonly store: Store;
  readonly seal: Seal;
  readonly objects: ObjectStore;
  readonly inspector: Inspector;
  /** A signed link to a job's file, `null` when it has none. */
  readonly linkOf: (job: Job) => string | null;
  /** Folder of the sockets. */
  readonly home: string;
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly log: Log;
  readonly metrics: Metrics;
}

const hour = 3_600_000;
const interruptionsMost = 10;

/** Starts the controller with its gateway, workers and sweeps; released in reverse. */
export async function startWork(parts: WorkParts, stop: Stop): Promise<Controller> {
  const { config, store, seal, objects, inspector, home, log, metrics } = parts;
  const limits: Limits = {
    attempts: config.attempts,
    interruptions: interruptionsMost,
    queueMilliseconds: config.queueHours * hour,
    storingMilliseconds: 24 * hour,
    jobMilliseconds: config.jobSeconds * 1000,
  };
  let hint = (_job: string) => {};
  const gateway = makeGateway({
    ...{ store, seal, objects, log, fileBytes: config.maxFileBytes, inspectSeconds: config.inspectSeconds },
    ended: (job) => hint(job),
  });
  const socket = join(home, 'gateway.sock');
  stop.add('gateway', await listenAt(gateway.server, socket));
  const workers = openProcessRunner({
    command: [...parts.command, 'worker'] as [string, ...string[]],
    env: {
      ...parts.env,
      TRAWL_GATEWAY_ADDRESS: `unix:${socket}`,
      TRAWL_EGRESS_ADDRESS: `unix:${join(home, 'egress.sock')}`,
    },
    tokenOf: (attempt) => makeToken(attempt, seal.sign),
    verdictOf: gateway.verdictOf,
    log,
  });
  const inspections = runInspections(inspector, (id) => readJob(store, id), config.inspectSeconds, log);
  const controller = await startController({
    ...{ store, limits, objects, metrics, log, slots: config.workers, runners: [workers, inspections] },
    runnerOf: (job) => (job.endpoint === 'metadata' ? inspections : workers),
    forget: gateway.forget,
  });
  hint = controller.hint;
  stop.add('controller', controller.close, 12);
  const common = { store, isLeading: controller.isLeading, log };
  const lifetimes = {
    job: config.jobDays * 24 * hour,
    line: config.logDays * 24 * hour,
    file: config.fileHours * hour,
  };
  const sweep = startSweep({ ...common, objects, lifetimes });
  stop.add('sweep', sweep.close, 3);
  const deliveries = startDeliveries({
    ...{ store, seal, metrics, log, linkOf: parts.linkOf },
    proxy: { socketPath: join(home, 'egress.sock') },
    limitSeconds: config.webhookSeconds,
    gapSeconds: config.webhookGapSeconds,
    drainSeconds: 2,
  });
  stop.add('webhooks', deliveries.close, 5);
  stop.add('hints for webhooks', await store.connection.subscribe(channels.work, deliveries.wake));
  const gauges = startGauges({ ...common, metrics });
  stop.add('gauges', gauges.close, 3);
  return controller;
}
