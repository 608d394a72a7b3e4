import type { Finding } from '../admin/doctor-finding.ts';
import type { Config, ConfigRule } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import { findListenError } from '../base/reach-server.ts';
import { makeSeal, type Seal } from '../base/seal.ts';
import type { ServerAddress } from '../base/server-address.ts';
import type { Traces } from '../base/traces.ts';
import type { Inspector } from '../model/inspection-result.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { openObjects } from '../objects/open-objects.ts';
import type { UpkeepParts } from '../store/upkeep-parts.ts';
import { askInspector } from './inspector-client.ts';
import { openRecord } from './open-record.ts';
import { openTraces } from './open-traces.ts';
import { isPublic } from './public-endpoint.ts';
import { isRecordReady, type Readiness } from './readiness.ts';
import type { RunningRole } from './run-role.ts';

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

/** Parts of every API, dashboard and controller. */
export interface SharedParts extends UpkeepParts {
  readonly config: Config;
  readonly seal: Seal;
  readonly objects: ObjectStore;
  readonly inspector: Inspector;
  readonly traces: Traces | null;
}

export async function openShared(
  { config, log, metrics, stop }: RunningRole<(typeof sharedSettings)[number]>,
  readiness: Readiness,
): Promise<SharedParts> {
  const report = ({ about, text }: Finding) => log.warn('the record is not all well', { about, finding: text });
  const traces = await openTraces({ config, log, metrics, stop });
  const store = await openRecord({ config, log, metrics, stop }, report);
  readiness.set('record', () => isRecordReady(store));
  const seal = sealOf(config, config.secret);
  const objects = await openObjects(config, seal, store.clock.now, () => isPublic(config.s3Endpoint));
  await warnIfAway('inspector', config.inspectorAddress, log);
  return { config, store, seal, objects, inspector: askInspector(config.inspectorAddress), log, metrics, traces };
}

/** Returns the seal of the present TRAWL_SECRET, or of a secret that the data folder has. */
export function sealOf(config: Config, secretOfFolder: Uint8Array): Seal {
  return makeSeal({
    get secret() {
      return config.secret ?? secretOfFolder;
    },
    get old() {
      return config.secretOld;
    },
  });
}

export async function warnIfAway(part: string, address: ServerAddress, log: Log): Promise<void> {
  const error = await findListenError(address);
  if (error !== null) log.warn('a part cannot be reached yet', { part, address, error });
}
