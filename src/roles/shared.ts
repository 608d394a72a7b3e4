import type { Finding } from '../admin/doctor-finding.ts';
import type { ConfigRule } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import { makeSeal } from '../base/seal.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { askInspector } from './inspector-client.ts';
import { openBucket } from './open-objects.ts';
import { openRecord } from './open-record.ts';
import type { Readiness } from './readiness.ts';
import type { RunningRole } from './run-role.ts';
import type { ApiParts } from './serve-api.ts';
import { isListening } from './socket.ts';

/** Required where roles run apart from each other. */
export const sharedSettings = [
  'TRAWL_REDIS_URL',
  'TRAWL_SECRET',
  'TRAWL_PUBLIC_URL',
  'TRAWL_INSPECTOR_ADDRESS',
] as const;

export const sharedRules: readonly ConfigRule[] = [
  {
    broken: ({ objects }) => objects === 'folder',
    sentence: 'TRAWL_OBJECTS must be s3 here: parts that run apart share no folder.',
  },
];

export async function openShared(
  { config, log, metrics, stop }: RunningRole<(typeof sharedSettings)[number]>,
  readiness: Readiness,
): Promise<ApiParts> {
  const report = ({ about, text }: Finding) => log.warn('the record is not all well', { about, finding: text });
  const store = await openRecord({ config, log, metrics, stop }, report);
  readiness.set('record', store.connection.ready);
  const seal = makeSeal({ secret: config.secret, old: config.secretOld });
  const objects = await openBucket(config);
  await warnIfAway('inspector', config.inspectorAddress, log);
  return { config, store, seal, objects, inspector: askInspector(config.inspectorAddress), log, metrics };
}

export async function warnIfAway(part: string, address: ServerAddress, log: Log): Promise<void> {
  if (!(await isListening(address))) log.warn('a part cannot be reached yet', { part, address });
}
