import { openRegular } from './child-folder.ts';
import { boxesAlong } from './mp4-boxes.ts';

/** Boxes of an MP4, each inside the one before, down to the entries that name what its samples are. */
const toEntries = ['moov', 'trak', 'mdia', 'minf', 'stbl', 'stsd', null];
/** Names of encrypted samples: those of ISO/IEC 14496-12, 8.12, of iTunes and of Audible. */
const encrypted = /^(enc[vatms]|drm[is]|aavd)$/;

/**
 * Returns true for an MP4 with samples that only a key makes readable: ffprobe and ffmpeg take such samples for those that they were
 * before, and copy them. False for other formats.
 */
export async function isEncryptedMp4(file: string): Promise<boolean> {
  await using handle = await openRegular(file);
  for await (const { kind } of boxesAlong(handle, toEntries, 0, (await handle.stat()).size)) {
    if (encrypted.test(kind)) return true;
  }
  return false;
}
