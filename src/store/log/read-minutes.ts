import type { Endpoint } from '../../model/job.ts';
import type { MinuteBucket } from '../../model/stats.ts';
import { keys } from '../keys.ts';
import { pairs, type RecordStore } from '../script.ts';

/** Returns the counted minutes of an endpoint: those of the last hour, and perhaps older ones. */
export async function readMinutes(store: RecordStore, endpoint: Endpoint): Promise<MinuteBucket[]> {
  const slots = pairs(await store.connection.read(['HGETALL', keys.stats(endpoint)]));
  return Object.values(slots).map((line) => {
    const [minute = 0, count = 0, good = 0, timed = 0, milliseconds = 0, runs = 0, runMs = 0] = line
      .split(' ')
      .map(Number);
    return { minute, count, good, timed, milliseconds, runs, runMs };
  });
}
