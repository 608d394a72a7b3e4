import type { Config } from '../base/config.ts';
import { Refusal } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Seal } from '../base/seal.ts';
import { readDrain } from '../store/access/drain.ts';
import { readStrayProxy } from '../store/access/stray-proxy.ts';
import { listDamaged } from '../store/accounts/read-plans.ts';
import { listUnreadableSecrets } from '../store/accounts/reseal-webhook-secret.ts';
import { readBackupNotes } from '../store/backup/backup-notes.ts';
import { readRestore } from '../store/backup/restore-lease.ts';
import { isLeaderOff } from '../store/jobs/leadership.ts';
import { keys } from '../store/keys.ts';
import { findRecord, noRecord } from '../store/open-store.ts';
import type { Patience } from '../store/redis/call-sender.ts';
import { type Connection, connect } from '../store/redis/connection.ts';
import { readTopology } from '../store/redis/discovery.ts';
import { checkDurability, readSection } from '../store/redis/durability.ts';
import { explainFailure, sentenceForOperator } from '../store/redis/explain-failure.ts';
import { tryNewConnections } from '../store/redis/new-connections.ts';
import { readMemory } from '../store/redis/redis-memory.ts';
import { readRecordState } from '../store/schema.ts';
import { type Finding, fine, judged, problem } from './doctor-finding.ts';
import {
  checkBackup,
  checkClockDifference,
  checkDamage,
  checkDrain,
  checkLayout,
  checkLeaderClock,
  checkMemory,
  checkRestore,
  checkServers,
  checkStrayProxy,
  checkWebhookSecrets,
} from './record-findings.ts';

type Rules = Pick<Config, 'durability' | 'redisMemory' | 'trustedProxies'>;

/** Checks the Redis of the record, and what is sealed in it where a secret is known; changes nothing in it. */
export async function checkRecord(
  config: Pick<Config, 'redisUrl' | 'data'> & Rules,
  log: Log,
  patience: Patience,
  seal: Seal | null,
): Promise<Finding[]> {
  const url = await findRecord(config);
  if (url === null) return [{ level: 'note', about: 'record', text: `${noRecord(config)}.` }];
  try {
    const connection = await connect(url, { log, patience });
    try {
      const notes = await readBackupNotes({ connection });
      const found = await checkConnection(connection, config);
      const sealed = seal === null ? [] : [checkWebhookSecrets(await listUnreadableSecrets({ connection }, seal))];
      return [...found, ...sealed, ...(await findServers(url)), checkBackup(notes, connection.clock.now())];
    } finally {
      await connection.close();
    }
  } catch (error) {
    const text = error instanceof Error ? sentenceForOperator(error) : String(error);
    // A URL that cannot be read has no servers: the problem above says so.
    return [problem('record', `${text}.`), ...(await findServers(url).catch(() => []))];
  }
}

async function findServers(url: string): Promise<Finding[]> {
  return checkServers(await tryNewConnections(readTopology(url)));
}

/** Checks durability, clock, memory and proxies through a connection. */
export async function checkConnection(connection: Connection, config: Rules): Promise<Finding[]> {
  return [
    await checkRecordDurability(connection, config.durability),
    await checkChanges(connection),
    checkClockDifference(connection.clock.machineAheadMs()),
    checkLeaderClock(await isLeaderOff(connection)),
    checkMemory(await readMemory(connection, config.redisMemory)),
    checkStrayProxy(await readStrayProxy(connection), config.trustedProxies),
    checkDrain(await readDrain({ connection })),
    checkLayout(await readRecordState({ connection })),
    checkRestore(await readRestore({ connection })),
    ...checkDamage(await listDamaged({ connection })),
  ];
}

/** Asks for a change that finds nothing to change: a Redis that refuses changes may still answer reads. */
async function checkChanges({ send }: Connection): Promise<Finding> {
  const isReplica = (await readSection(send, 'replication'))?.get('role') === 'slave';
  // A change that a replica refuses is asked for again, for as long as the doctor waits.
  const refusedBy = isReplica
    ? new Error('READONLY')
    : await send(['HDEL', keys.plans, '']).then(
        () => null,
        (error: Error) => (error instanceof Refusal ? error.cause : error),
      );
  if (refusedBy !== null) return problem('changes', `Redis takes no changes: ${explainFailure(refusedBy)}.`);
  return fine('changes', 'Redis takes changes.');
}

async function checkRecordDurability(connection: Connection, mode: Config['durability']): Promise<Finding> {
  const findings = await checkDurability(connection, 'relaxed');
  const well = 'Redis writes every change to disk before it answers.';
  const ill = `Redis may lose charges: ${findings.join('; ')}.`;
  return judged('durability', findings.length === 0, well, ill, mode === 'strict' ? 'problem' : 'note');
}
