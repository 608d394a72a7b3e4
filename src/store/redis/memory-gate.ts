import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Connection } from './connection.ts';
import { memoryRatio, readMemory } from './memory-limit.ts';

export interface MemoryGate {
  /** False from 85 % of the memory on. */
  isOpen: boolean;
  readonly close: () => void;
}

/** Share of Redis memory from which on no new job is admitted, so that settle, cancel and release still have room. */
export const fullRatio = 0.85;
const intervalMs = 1000;

/**
 * Reads the memory of Redis every second; `assumedBytes` is the limit of a Redis that has none. While Redis does not answer, the gate
 * stays as it is.
 */
export async function watchMemory(
  connection: Connection,
  assumedBytes: number | null,
  metrics: Metrics,
  log: Log,
): Promise<MemoryGate> {
  const gate: MemoryGate = { isOpen: true, close: () => clearInterval(timer) };
  const read = async () => {
    metrics.redis_ready.set(connection.ready() ? 1 : 0);
    try {
      const memory = await readMemory(connection, assumedBytes);
      const ratio = memoryRatio(memory);
      metrics.redis_memory_unlimited.set(memory.isOwnLimit ? 0 : 1);
      metrics.redis_memory_ratio.set(ratio);
      if (gate.isOpen && ratio >= fullRatio) log.error('the memory of redis is nearly full: nothing more is admitted');
      gate.isOpen = ratio < fullRatio;
    } catch (error) {
      log.debug('the memory of redis could not be read', { error });
    }
  };
  const timer = setInterval(() => void read(), intervalMs).unref();
  await read();
  return gate;
}
