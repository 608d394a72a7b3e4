import type { FileHandle } from 'node:fs/promises';
import { openRegular } from './child-folder.ts';
import { boxesAlong } from './mp4-boxes.ts';

/** Boxes of an MP4, each inside the one before, down to which parts of its media a track shows (ISO/IEC 14496-12, 8.6.6). */
const toEdits = ['moov', 'trak', 'edts', 'elst'];
/** A film has a few. */
const maxEdits = 1000;

/**
 * Returns true for an MP4 with a track of several parts, as of a film from whose middle something was cut: a copy would have what is between them,
 * and what is behind it too late. False for other formats.
 */
export async function isEdited(file: string): Promise<boolean> {
  await using handle = await openRegular(file);
  for await (const { start, end } of boxesAlong(handle, toEdits, 0, (await handle.stat()).size)) {
    if (await hasSeveral(handle, start, end)) return true;
  }
  return false;
}

/** Returns true for a list with more than one edit that shows media; others are pauses. */
async function hasSeveral(handle: FileHandle, start: number, end: number): Promise<boolean> {
  const length = Math.min(end - start, 8 + 20 * maxEdits);
  const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(Math.max(8, length)), position: start });
  const [size, at] = buffer[0] === 1 ? [20, 8] : [12, 4];
  const count = Math.min(buffer.readUInt32BE(4), Math.floor((bytesRead - 8) / size));
  const times = Array.from({ length: Math.max(0, count) }, (_, n) => buffer.readInt32BE(8 + n * size + at));
  return times.filter((time) => time !== -1).length > 1;
}
