import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findCgroup, type OpenCgroup, openCgroup, removeCgroups } from '../base/cgroup.ts';
import type { CgroupPlace } from '../base/cgroup-place.ts';
import type { Log } from '../base/log.ts';

/**
 * Finds the cgroup below which all children of one work folder get theirs, and removes what killed processes left, also where
 * these were in another cgroup. Returns `null` where none can be made: the memory of children is then only measured.
 */
export async function openOwnCgroup(
  setting: string | null,
  note: string,
  work: string,
  log: Log,
): Promise<OpenCgroup | null> {
  const left = await readFile(note, 'utf8').catch(() => null);
  if (left !== null) {
    await removeCgroups(left, work).catch((error) => log.warn('a cgroup is left', { folder: left, error }));
  }
  if (setting === 'off') return null;
  const place = setting === null ? findCgroup() : placeAt(setting);
  if (typeof place === 'string') {
    log.info('memory of children is measured, not limited by a cgroup', { reason: place });
    return null;
  }
  try {
    await writeFile(note, place.folder);
    const cgroup = await openCgroup(place, work);
    log.info('cgroup of children', { folder: cgroup.folder, version: place.version });
    return cgroup;
  } catch (error) {
    log.warn('no cgroup can be made: memory of children is only measured', { folder: place.folder, error });
    return null;
  }
}

function placeAt(folder: string): CgroupPlace {
  return { version: existsSync(join(folder, 'cgroup.controllers')) ? 2 : 1, folder };
}
