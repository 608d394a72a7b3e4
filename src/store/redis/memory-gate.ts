import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Connection } from './connection.ts';
import { memoryRatio } from './durability.ts';

export interface MemoryGate {
  isOpen(): boolean;
  close(): void;
}

/** Share of Redis memory from which on no new job is admitted, so that settle, cancel and release still have room. */
export const fullRatio = 0.85;
const intervalMs = 1000;

/** Reads the memory of Redis every second. While Redis does not answer, the gate stays as it is. */
export async function watchMemory(connection: Connection, metrics: Metrics, log: Log): Promise<MemoryGate> {
  let ratio = 0;
  const read = async () => {
    metrics.redis_ready.set(connection.ready() ? 1 : 0);
    try {
      const before = ratio;
      ratio = await memoryRatio(connection);
      metrics.redis_memory_ratio.set(ratio);
      if (before < fullRatio && ratio >= fullRatio)
        log.error('the memory of redis is nearly full: nothing more is admitted');
    } catch (error) {
      log.debug('the memory of redis could not be read', { error });
    }
  };
  await read();
  const timer = setInterval(() => void read(), intervalMs);
  timer.unref();
  return { isOpen: () => ratio < fullRatio, close: () => clearInterval(timer) };
}
