import { checkConnection } from '../admin/check-record.ts';
import type { Finding } from '../admin/doctor-finding.ts';
import { machineMemoryBytes } from '../base/machine-memory.ts';
import { openStore, recordFolder } from '../store/open-store.ts';
import { watchClock } from '../store/redis/clock-watch.ts';
import { startRedis } from '../store/redis/embedded-server.ts';
import { readMemory } from '../store/redis/redis-memory.ts';
import type { RecordStore } from '../store/script.ts';
import type { RunningRole } from './run-role.ts';

/** Share of the machine's memory for a redis-server of our own: workers and inspections use the rest. */
const ownShare = 0.25;
/** On a busy machine Redis may be late: a role that ended for it would only begin anew, later. */
const openMs = 20_000;

/** Opens the record, in a redis-server of our own unless the settings name one, and reports every finding that is not ok. */
export async function openRecord(
  { config, log, metrics, stop }: Pick<RunningRole, 'config' | 'log' | 'metrics' | 'stop'>,
  report: (finding: Finding) => void,
): Promise<RecordStore> {
  if (config.redisUrl === null) {
    const maxMemoryBytes = config.redisMemory ?? Math.floor(machineMemoryBytes() * ownShare);
    const redis = await startRedis({ folder: recordFolder(config.data), maxMemoryBytes, log });
    stop.add('redis', redis.stop, 10);
  }
  // Until it is reached: a role whose Redis is away from the start shows that, too.
  metrics.redis_ready.set(0);
  const { store, close } = await openStore(config, log.with({ part: 'record' }), {
    openMs,
    durations: metrics.redis_seconds,
    observeLapse: (credits) => metrics.lapses_total.inc({ balance: 'subscription' }, credits),
    observeReplicas: (seconds, hasReplica) => {
      metrics.redis_replica_seconds.observe(seconds);
      if (!hasReplica) metrics.redis_unreplicated_total.inc();
    },
  });
  stop.add('record', close);
  stop.add('clock', watchClock(store.connection.clock, metrics, log.with({ part: 'clock' })).close);
  const { isOwnLimit } = await readMemory(store.connection, config.redisMemory);
  metrics.redis_memory_unlimited.set(isOwnLimit ? 0 : 1);
  metrics.refreshers.add(async () => {
    const { weaknesses, replicas } = store.connection.durability();
    metrics.redis_ready.set(store.connection.ready() ? 1 : 0);
    metrics.durability_relaxed.set(weaknesses.length > 0 ? 1 : 0);
    metrics.redis_replicas.set(replicas);
  });
  for (const finding of await checkConnection(store.connection, config)) if (finding.level !== 'ok') report(finding);
  return store;
}
