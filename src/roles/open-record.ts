import { checkConnection } from '../admin/check-record.ts';
import type { Finding } from '../admin/doctor-finding.ts';
import { openStore, recordFolder } from '../store/open-store.ts';
import { startRedis } from '../store/redis/embedded-server.ts';
import type { RecordStore } from '../store/script.ts';
import type { RunningRole } from './run-role.ts';

/** Opens the record, in a redis-server of our own unless the settings name one, and reports every finding that is not ok. */
export async function openRecord(
  { config, log, metrics, stop }: Pick<RunningRole, 'config' | 'log' | 'metrics' | 'stop'>,
  report: (finding: Finding) => void,
): Promise<RecordStore> {
  if (config.redisUrl === null) {
    const redis = await startRedis({ folder: recordFolder(config.data), log });
    stop.add('redis', redis.stop, 10);
  }
  const observe: RecordStore['observe'] = (script, seconds) => metrics.redis_seconds.observe({ script }, seconds);
  const { store, isRelaxed, close } = await openStore(config, log.with({ part: 'record' }), observe);
  stop.add('record', close);
  metrics.durability_relaxed.set(isRelaxed ? 1 : 0);
  for (const finding of await checkConnection(store.connection, config)) if (finding.level !== 'ok') report(finding);
  return store;
}
