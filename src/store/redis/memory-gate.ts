import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Connection } from './connection.ts';
import { memoryRatio } from './durability.ts';

/** Whether the record has room for more: admissions stop at 85 % of its memory, so that what ends always can. */
export interface Room {
  has(): boolean;
  close(): void;
}

/** Share of Redis memory from which on no new job is admitted, so that settle, cancel and release still have room. */
export const fullRatio = 0.85;
const lookMilliseconds = 1000;

/** Looks every second. While Redis does not answer, the last answer stays: the calls themselves fail then. */
export async function watchRoom(connection: Connection, metrics: Metrics, log: Log): Promise<Room> {
  let ratio = 0;
  const look = async () => {
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
  await look();
  const timer = setInterval(() => void look(), lookMilliseconds);
  timer.unref();
  return { has: () => ratio < fullRatio, close: () => clearInterval(timer) };
}
