import type { AttemptProgress } from '../model/attempt-protocol.ts';
import { AttemptOver, type GatewayClient } from './gateway-client.ts';

/** Tells the gateway how far an attempt is. */
export interface ProgressReporter {
  /** Remembers what to tell; only the newest is told. */
  readonly note: (progress: AttemptProgress) => void;
  readonly stop: () => void;
}

export interface ProgressReporterOptions {
  readonly gateway: GatewayClient;
  readonly everyMs: number;
  /** The gateway is also told when nothing has changed: its answer says whether the job goes on. */
  readonly keepaliveMs: number;
  /** For so long it may be away. */
  readonly patienceSeconds: number;
  readonly over: () => void;
  readonly lost: () => void;
}

/** Starts to tell progress, one call at a time. */
export function startProgressReporter(options: ProgressReporterOptions): ProgressReporter {
  const { gateway, everyMs, keepaliveMs, patienceSeconds, over, lost } = options;
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
      if (error instanceof AttemptOver) over();
      // Progress may be lost; a gateway that stays away means that nobody waits for this attempt.
      else if (performance.now() - heardAt > patienceSeconds * 1000) lost();
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
