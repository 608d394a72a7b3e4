import type { Log } from '../base/log.ts';
import { startPeriodicTask } from '../base/periodic-task.ts';
import type { AttemptProgress } from '../model/attempt-protocol.ts';
import { AttemptOver, type GatewayClient, GatewayRefusal, UnknownToken } from './gateway-client.ts';
import type { StageClock } from './stage-clock.ts';

/** The gateway writes no more than that. */
const reportEveryMs = 1_000;
/** Reports at least so often, also without a change: the answer says whether the job goes on. */
const keepaliveMs = 5_000;

interface ReporterOptions {
  readonly gateway: GatewayClient;
  readonly stages: StageClock;
  readonly patienceSeconds: number;
  readonly log: Log;
}

/** Reports the newest progress, one call at a time; `onEnd` hears of a job that is over, and of a gateway away for too long. */
export function startProgressReporter(
  { gateway, stages, patienceSeconds, log }: ReporterOptions,
  onEnd: (reason: 'over' | 'lost') => void,
) {
  // The gateway notes this itself when it hands out the order.
  let newest: AttemptProgress = { progress: 0, stage: 'inspect', speed_bytes: null, eta_seconds: null };
  let told = newest;
  let toldAt = performance.now();
  let heardAt = toldAt;
  let isWarned = false;
  /** Drops a report: its gateway is there, and one of another version may take the next one. */
  const drop = (error: GatewayRefusal) => {
    heardAt = performance.now();
    if (!isWarned) log.warn('the gateway refuses reports of progress: they are dropped', { error });
    isWarned = true;
  };
  const report = async () => {
    const now = performance.now();
    if (newest === told && now - toldAt < keepaliveMs) return;
    told = newest;
    toldAt = now;
    try {
      await gateway.reportProgress({ ...newest, stages: stages.times() });
      heardAt = performance.now();
    } catch (error) {
      if (error instanceof AttemptOver) onEnd('over');
      else if (error instanceof GatewayRefusal && !(error instanceof UnknownToken)) drop(error);
      // One lost report is harmless; a gateway that stays away cannot take the verdict either.
      else if (performance.now() - heardAt > patienceSeconds * 1000) onEnd('lost');
    }
  };
  const task = startPeriodicTask(report, reportEveryMs);
  return {
    note: (progress: AttemptProgress) => {
      stages.enter(progress.stage);
      newest = progress;
    },
    stop: () => void task.close(),
  };
}
