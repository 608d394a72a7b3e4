import type { FileHandle } from 'node:fs/promises';
import { openRegular } from './child-folder.ts';
import { boxesOf } from './mp4-boxes.ts';

/** Boxes of an MP4, each inside the one before, down to the entries that name what its samples are. */
const toEntries = ['moov', 'trak', 'mdia', 'minf', 'stbl', 'stsd'];
/** Names of encrypted samples: those of ISO/IEC 14496-12, 8.12, of iTunes and of Audible. */
const encrypted = /^(enc[vatms]|drm[is]|aavd)$/;
/** A film with a dozen tracks has some hundred. */
const maxBoxes = 4096;

/**
 * Returns true for an MP4 with samples that only a key makes readable: ffprobe and ffmpeg take such samples for those that they were
 * before, and copy them. False for other formats.
 */
export async function isEncryptedMp4(file: string): Promise<boolean> {
  await using handle = await openRegular(file);
  return await leadsToEncrypted(handle, toEntries, 0, (await handle.stat()).size, { boxes: maxBoxes });
}

async function leadsToEncrypted(
  handle: FileHandle,
  [wanted, ...inner]: readonly string[],
  from: number,
  to: number,
  left: { boxes: number },
): Promise<boolean> {
  for await (const { kind, start, end } of boxesOf(handle, from, to)) {
    if (left.boxes-- <= 0) return false;
    if (wanted === undefined && encrypted.test(kind)) return true;
    // Behind its head, the box of entries tells their number.
    const first = kind === 'stsd' ? start + 8 : start;
    if (kind === wanted && (await leadsToEncrypted(handle, inner, first, end, left))) return true;
    // What follows the index of a film in pieces may be thousands of them.
    if (kind === 'moov') return false;
  }
  return false;
}
