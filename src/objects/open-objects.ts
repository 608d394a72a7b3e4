import { join } from 'node:path';
import type { Config } from '../base/config.ts';
import { type FolderOptions, openFolder } from './folder-store.ts';
import type { ObjectStore } from './object-store.ts';

/** Folder with the files of a machine that keeps them itself. */
export function objectsFolder(data: string): string {
  return join(data, 'objects');
}

/** Opens the object store of the settings; `throughEgress` matters only to a controller, which permits uploads. */
export async function openObjects(
  config: Config,
  seal: FolderOptions['seal'],
  now: () => number,
  throughEgress = async () => true,
): Promise<ObjectStore> {
  if (config.objects === 'folder') return openFolder({ folder: objectsFolder(config.data), seal, now });
  // Loaded only here, because it is large.
  const { openS3, partBytesFor } = await import('./s3-store.ts');
  return openS3({ settings: config, partBytes: partBytesFor(config.maxFileBytes), throughEgress });
}
