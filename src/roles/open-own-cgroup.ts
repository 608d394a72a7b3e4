import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findCgroup, type OpenCgroup, openCgroup, removeCgroups } from '../base/cgroup.ts';
import type { Log } from '../base/log.ts';
import type { FoundCgroup } from '../base/parent-cgroup.ts';

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
  const parent = setting === null ? findCgroup() : cgroupAt(setting);
  if (typeof parent === 'string') {
    log.info('memory of children is measured, not limited by a cgroup', { reason: parent });
    return null;
  }
  try {
    await writeFile(note, parent.folder);
    const cgroup = await openCgroup(parent, work);
    log.info('cgroup of children', { folder: cgroup.folder, version: parent.version });
    return cgroup;
  } catch (error) {
    log.warn('no cgroup can be made: memory of children is only measured', { folder: parent.folder, error });
    return null;
  }
}

function cgroupAt(folder: string): FoundCgroup {
  return { version: existsSync(join(folder, 'cgroup.controllers')) ? 2 : 1, folder };
}
