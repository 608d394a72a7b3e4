import type { FileHandle } from 'node:fs/promises';
import { openRegular } from './child-folder.ts';

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
  const handle = await openRegular(file);
  try {
    return await leadsToEncrypted(
      handle,
      toEntries,
      { start: 0, end: (await handle.stat()).size },
      { boxes: maxBoxes },
    );
  } finally {
    await handle.close();
  }
}

async function leadsToEncrypted(
  handle: FileHandle,
  [wanted, ...inner]: readonly string[],
  { start, end }: { readonly start: number; readonly end: number },
  left: { boxes: number },
): Promise<boolean> {
  for (let at = start; at + 8 <= end && left.boxes-- > 0; ) {
    const { buffer } = await handle.read({ buffer: Buffer.alloc(16), position: at });
    const [size, kind] = [buffer.readUInt32BE(0), buffer.toString('latin1', 4, 8)];
    if (wanted === undefined && encrypted.test(kind)) return true;
    const next = at + (size === 1 ? Number(buffer.readBigUInt64BE(8)) : size || end - at);
    if (next < at + 8) return false;
    // Behind its head, the box of entries tells their number.
    const head = (size === 1 ? 16 : 8) + (kind === 'stsd' ? 8 : 0);
    const inside = { start: at + head, end: Math.min(next, end) };
    if (kind === wanted && (await leadsToEncrypted(handle, inner, inside, left))) return true;
    // What follows the index of a film in pieces may be thousands of them.
    if (kind === 'moov') return false;
    at = next;
  }
  return false;
}
