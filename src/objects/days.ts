import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { refuse } from '../base/errors.ts';
import type { FolderStore } from './folder.ts';
import type { ObjectStore } from './objects.ts';

const press = promisify(gzip);
const unpress = promisify(gunzip);
/** No object that was written here comes near it. */
const mostBytes = 256 * 1024 * 1024;

/** Keeps lines under a key: gzip, one JSON value a line. */
export async function keepLines(
  objects: Pick<FolderStore, 'permit' | 'receive'>,
  key: string,
  lines: readonly object[],
): Promise<void> {
  const body = await press(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  await objects.receive(await objects.permit(key, body.length), oneChunk(body));
}

/** Gives the lines that are kept under a key; `null` when there are none. */
export async function openLines(objects: Pick<ObjectStore, 'open'>, key: string): Promise<unknown[] | null> {
  const opened = await objects.open(key);
  if (opened === null) return null;
  if (opened.is !== 'stream') throw refuse('unavailable', `The object ${key} cannot be read from here`);
  const text = await unpress(await buffer(opened.stream), { maxOutputLength: mostBytes });
  return text
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown);
}

async function* oneChunk(body: Uint8Array): AsyncGenerator<Uint8Array> {
  yield body;
}
