import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { ObjectStore } from '../objects/object-store.ts';
import { DamagedPart } from '../store/log/archived-parts.ts';

const press = promisify(gzip);
const unpress = promisify(gunzip);
/** Against a compression bomb: objects of ours are far smaller. */
const maxUnpackedBytes = 256 * 1024 * 1024;

export async function writeJsonLines(
  objects: Pick<ObjectStore, 'keep'>,
  key: string,
  lines: readonly object[],
): Promise<void> {
  await objects.keep(key, await press(lines.map((line) => `${JSON.stringify(line)}\n`).join('')));
}

/** Returns `null` when the object is missing; throws `DamagedPart` when it holds something else. */
export async function readJsonLines(objects: Pick<ObjectStore, 'read'>, key: string): Promise<unknown[] | null> {
  const body = await objects.read(key);
  if (body === null) return null;
  try {
    const text = await unpress(body, { maxOutputLength: maxUnpackedBytes });
    return text
      .toString('utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as unknown);
  } catch (error) {
    throw new DamagedPart(`${key} cannot be read: ${(error as Error).message}`);
  }
}
