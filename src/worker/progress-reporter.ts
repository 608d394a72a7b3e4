import type { AttemptProgress } from '../model/attempt-protocol.ts';
import { AttemptOver, type GatewayClient } from './gateway-client.ts';

/** Sends the progress of an attempt to the gateway. */
export interface ProgressReporter {
  /** Keeps the newest progress for the next report. */
  readonly note: (progress: AttemptProgress) => void;
  readonly stop: () => void;
}

export interface ProgressReporterOptions {
  readonly gateway: GatewayClient;
  readonly everyMs: number;
  /** Reports at least so often, also without a change: the answer says whether the job goes on. */
  readonly keepaliveMs: number;
  /** Longest absence of the gateway before `lost` is called. */
  readonly patienceSeconds: number;
  readonly onOver: () => void;
  readonly onLost: () => void;
}

/** Starts to report, one call at a time. */
export function startProgressReporter(options: ProgressReporterOptions): ProgressReporter {
  const { gateway, everyMs, keepaliveMs, patienceSeconds, onOver, onLost } = options;
  let newest: AttemptProgress = { progress: 0, stage: 'inspect', speed_bytes: null, eta_seconds: null };
  let told: AttemptProgress | null = null;
  let toldAt = performance.now();
  let heardAt = toldAt;
  let calling = false;
  const tell = async () => {
    const now = performance.now();
    if (calling || (newest === told && now - toldAt < keepaliveMs)) return;
    calling = true;
    told = newest;
    toldAt = now;
    try {
      await gateway.reportProgress(newest);
      heardAt = performance.now();
    } catch (error) {
      if (error instanceof AttemptOver) onOver();
      // One lost report is harmless; a gateway that stays away cannot take the verdict either.
      else if (performance.now() - heardAt > patienceSeconds * 1000) onLost();
    } finally {
      calling = false;
    }
  };
  const timer = setInterval(() => void tell(), everyMs);
  return {
    note: (progress) => {
      newest = progress;
    },
    stop: () => clearInterval(timer),
  };
}
