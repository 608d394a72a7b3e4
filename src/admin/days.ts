import { join } from 'node:path';
import type { Config } from '../base/config.ts';
import type { Seal } from '../base/seal.ts';
import { openLines } from '../objects/days.ts';
import { type FolderStore, openFolder } from '../objects/folder.ts';
import type { OpenDays } from '../store/days.ts';

/** Opens what was moved to the object store beside the record; that is looked for when the first of it is wanted. */
export function findDays(config: Pick<Config, 'data'>, seal: () => Promise<Seal>, now: () => number): OpenDays {
  let found: Promise<FolderStore> | undefined;
  const find = async () => openFolder({ folder: join(config.data, 'objects'), seal: await seal(), now });
  return async (object) => {
    found ??= find();
    return openLines(await found, object);
  };
}
