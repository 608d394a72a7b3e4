import type { AttemptProgress } from '../model/attempt-protocol.ts';
import { type Gateway, Over } from './gateway-client.ts';

/** Tells the gateway how far an attempt is. */
export interface Teller {
  /** Remembers what to tell; only the newest is told. */
  readonly note: (progress: AttemptProgress) => void;
  readonly stop: () => void;
}

export interface TellerOptions {
  readonly gateway: Gateway;
  readonly everyMilliseconds: number;
  /** The gateway is also told when nothing has changed: its answer says whether the job goes on. */
  readonly atLeastMilliseconds: number;
  /** For so long it may be away. */
  readonly patienceSeconds: number;
  readonly over: () => void;
  readonly lost: () => void;
}

/** Starts to tell progress, one call at a time. */
export function startTeller(options: TellerOptions): Teller {
  const { gateway, everyMilliseconds, atLeastMilliseconds, patienceSeconds, over, lost } = options;
  let newest: AttemptProgress = { progress: 0, stage: 'inspect', speed_bytes: null, eta_seconds: null };
  let told: AttemptProgress | null = null;
  let toldAt = performance.now();
  let heardAt = toldAt;
  let calling = false;
  const tell = async () => {
    const now = performance.now();
    if (calling || (newest === told && now - toldAt < atLeastMilliseconds)) return;
    calling = true;
    told = newest;
    toldAt = now;
    try {
      await gateway.tell(newest);
      heardAt = performance.now();
    } catch (error) {
      if (error instanceof Over) over();
      // Progress may be lost; a gateway that stays away means that nobody waits for this attempt.
      else if (performance.now() - heardAt > patienceSeconds * 1000) lost();
    } finally {
      calling = false;
    }
  };
  const timer = setInterval(() => void tell(), everyMilliseconds);
  return {
    note: (progress) => {
      newest = progress;
    },
    stop: () => clearInterval(timer),
  };
}
