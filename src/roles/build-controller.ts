import type { Config } from '../base/config.ts';
import type { ServerAddress } from '../base/server-address.ts';
import type { Shutdown } from '../base/shutdown.ts';
import { type Controller, type ControllerTimes, startController } from '../controller/controller.ts';
import { openCookies } from '../controller/cookies.ts';
import { startGauges } from '../controller/gauges.ts';
import { startLedgerCheck } from '../controller/ledger-check.ts';
import { openMetadataRunner } from '../controller/metadata-runner.ts';
import { startSweeper } from '../controller/sweeper.ts';
import { makeWorkerGateway } from '../controller/worker-gateway.ts';
import { makeLink } from '../model/file-link.ts';
import type { Job } from '../model/job.ts';
import type { JobLimits } from '../model/next.ts';
import { sharesOf } from '../model/preemption.ts';
import type { AttemptId, Runner } from '../runners/runner.ts';
import { readJob } from '../store/jobs/read-job.ts';
import { channels } from '../store/keys.ts';
import { deliverWebhooks } from '../webhooks/deliver-webhooks.ts';
import { testReceivers } from '../webhooks/test-receivers.ts';
import type { SharedParts } from './shared.ts';
import { certificateFilesOf, openListener } from './socket.ts';
import { startBilling } from './start-billing.ts';

/** Opens the runner of the workers and their authentication, which returns `null` for an unknown token or an attempt that is over. */
export type OpenWorkers = () => Promise<{
  readonly runner: Runner;
  readonly attemptOf: (token: string) => Promise<AttemptId | null>;
}>;

interface ControllerParts extends SharedParts {
  readonly publicUrl: () => string;
  readonly openWorkers: OpenWorkers;
  readonly gatewayAddress: ServerAddress;
  /** The proxy through which webhooks are sent. */
  readonly egress: ServerAddress;
  readonly times?: Partial<ControllerTimes>;
}

const hourMs = 3_600_000;
const maxInterruptions = 10;

/** Starts a controller with its workers, their gateway and its upkeep. */
export async function buildController(parts: ControllerParts, stop: Shutdown): Promise<Controller> {
  const { config, store, objects, inspector, metrics, traces, log } = parts;
  const { maxFileBytes, inspectSeconds } = config;
  const { runner, attemptOf } = await parts.openWorkers();
  stop.add('workers', () => runner.close(), 8);
  const gatewayLog = log.with({ part: 'gateway' });
  const cookiesOf = openCookies(config.cookies, gatewayLog);
  const { maxAttemptMs } = limitsOf(config);
  const limits = { maxFileBytes, maxAttemptMs, inspectSeconds };
  const certificate = 'path' in parts.gatewayAddress ? null : certificateFilesOf(config, metrics);
  const gateway = { store, objects, log: gatewayLog, attemptOf, cookiesOf, certificate, ...limits };
  stop.add('gateway', await openListener(makeWorkerGateway(gateway), parts.gatewayAddress));
  const readMetadataJob = (jobId: string) => readJob(store, jobId);
  const metadataLog = log.with({ part: 'metadata runner' });
  const metadataRunner = openMetadataRunner(inspector, readMetadataJob, inspectSeconds, metadataLog);
  const controller = await startController({
    ...{ store, objects, metrics, traces, limits: limitsOf(config), log: log.with({ part: 'controller' }) },
    shares: sharesOf(config.workers, config.reservedWorkers, config.preemptSeconds),
    runners: [runner, metadataRunner],
    runnerOf: (job) => (job.endpoint === 'metadata' ? metadataRunner : runner),
    ...(parts.times && { times: parts.times }),
  });
  stop.add('controller', () => controller.close(), 12);
  await startWebhooks(parts, stop);
  await startBilling(parts, stop);
  startUpkeep(parts, controller, stop);
  return controller;
}

/** Every controller delivers webhooks, leading or not. */
async function startWebhooks(parts: ControllerParts, stop: Shutdown): Promise<void> {
  const { config, store, seal, metrics, traces, egress, log } = parts;
  const linkOf = (job: Job) => {
    const until = (job.ended_at ?? 0) + config.fileHours * hourMs;
    const isGone = job.removed_at !== null || store.clock.now() >= until;
    return isGone ? null : makeLink(job, until, parts.publicUrl(), seal.sign);
  };
  const delivery = deliverWebhooks({
    ...{ store, seal, metrics, traces, linkOf, log: log.with({ part: 'webhooks' }) },
    proxy: egress,
    limitSeconds: config.webhookSeconds,
    gapSeconds: config.webhookGapSeconds,
    drainSeconds: 2,
  });
  stop.add('webhooks', delivery.close, 5);
  stop.add('hints for webhooks', await store.connection.subscribe(channels.webhooks, delivery.wake));
  const sending = { store, seal, proxy: egress, limitSeconds: config.webhookSeconds };
  const tests = testReceivers({ ...sending, log: log.with({ part: 'webhooks' }) });
  stop.add('tests of receivers', tests.close, 3);
  stop.add('hints for tests', await store.connection.subscribe(channels.receiverTests, tests.hear));
}

/** Only the leading controller sweeps, verifies the ledgers and sets the gauges. */
function startUpkeep(parts: ControllerParts, controller: Controller, stop: Shutdown): void {
  const { config, store, objects, metrics, log } = parts;
  const leading = { store, isLeading: () => controller.isLeading() };
  const lifetimes = {
    job: config.jobDays * 24 * hourMs,
    line: config.logDays * 24 * hourMs,
    file: config.fileHours * hourMs,
  };
  const sweeper = startSweeper({
    ...{ ...leading, objects, lifetimes, metrics, log: log.with({ part: 'sweeper' }) },
    probe: controller.storage,
  });
  stop.add('sweeper', sweeper.close, 3);
  const oldestUnsettled = () => controller.oldestUnsettled();
  const { backupsScheduled } = config;
  const gauges = startGauges({
    ...{ ...leading, metrics, oldestUnsettled, backupsScheduled, log: log.with({ part: 'gauges' }) },
  });
  stop.add('gauges', gauges.close, 3);
  const check = startLedgerCheck({ ...leading, metrics, log: log.with({ part: 'ledger check' }) });
  stop.add('check of all ledgers', check.close, 3);
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
