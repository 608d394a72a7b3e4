import { join } from 'node:path';
import type { Config } from '../base/config.ts';
import type { Seal } from '../base/seal.ts';
import { openFolder } from '../objects/folder-store.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import type { ReadArchivedPart } from '../store/log/archived-parts.ts';
import { readJsonLines } from './json-lines.ts';

/** Opens the object store at the first read. */
export function openArchive(config: Config, seal: () => Promise<Seal>, now: () => number): ReadArchivedPart {
  let found: Promise<ObjectStore> | undefined;
  const find = async () => {
    if (config.objects === 'folder')
      return openFolder({ folder: join(config.data, 'objects'), seal: await seal(), now });
    // Loaded only here, because it is large.
    const { openS3, partBytesFor } = await import('../objects/s3-store.ts');
    return openS3({ settings: config, partBytes: partBytesFor(config.maxFileBytes), throughEgress: async () => true });
  };
  return async (object) => {
    found ??= find();
    return readJsonLines(await found, object);
  };
}
