import type { FileHandle } from 'node:fs/promises';
import { openRegular } from './child-folder.ts';
import { boxesOf } from './mp4-boxes.ts';
import type { FileProbe } from './probe-file.ts';
import { Failed } from './tools.ts';

/**
 * Beginnings of the formats whose readers end, or begin anew, where another file was joined to the first one: what they begin with, and what
 * stands how many bytes behind that.
 */
const heads: Readonly<Record<string, readonly [string, number, string]>> = {
  flv: ['FLV\x01', 5, '\0\0\0\x09\0\0\0\0'],
  asf: ['\x30\x26\xb2\x75', 4, '\x8e\x66\xcf\x11\xa6\xd9\0\xaa\0\x62\xce\x6c'],
  wav: ['RIFF', 8, 'WAVE'],
  flac: ['fLaC', 5, '\0\0\x22'],
  aiff: ['FORM', 8, 'AIF'],
};
/** Length of the longest one. */
const headBytes = 16;
/** Beginning in which the properties of Windows Media stand. */
const beginningBytes = 2 ** 16;
const asfProperties = Buffer.from('a1dcab8c47a9cf118ee400c00c205365', 'hex');
/** Lengths that stand for an unknown one: from 0x7fff0000 on, and multiples of a million from 1 GB on, which scripts write that stream a WAV. */
const [unknownBytes, leastRound, roundBytes] = [0x7fff0000, 1e9, 1e6];
/** Share of its promised bytes that a file may lack (D92). */
const maxLacking = 0.05;
/** A hostile MP4 or WAV may have millions. */
const maxBoxes = 1000;

/** Throws a `Failed` for a file of which a part would be delivered for the whole: others were joined to it, or it is shorter than its head says. */
export async function refuseParts(file: string, { format, streams }: FileProbe, signal: AbortSignal): Promise<void> {
  // An MP4 in pieces promises no packets.
  const isIndexed = format.startsWith('mov') && streams.every(({ promised }) => promised !== null);
  if (isIndexed && (await hasTwoIndexes(file))) throw isJoined();
  await using handle = await openRegular(file);
  const { media, whole } = await toldEnds(handle, format, streams);
  const head = heads[format];
  // The reader of a WAV or AIFF whose length is not told reads to the end of the file, and those of other formats may stop anywhere.
  const from = /^(wav|aiff)$/.test(format) ? Math.max(media, whole) || Number.POSITIVE_INFINITY : 0;
  if (head !== undefined && (await hasTwo(file, head, from, signal))) throw isJoined();
  const { size } = await handle.stat();
  if (size < (1 - maxLacking) * media) throw new Failed('file_damaged', `${size} of ${media} bytes`);
}

/** Returns true for a file with two indexes and media for either: a copy of the index alone takes nothing away. */
async function hasTwoIndexes(file: string): Promise<boolean> {
  await using handle = await openRegular(file);
  const counts = { moov: 0, mdat: 0 };
  let left = maxBoxes;
  for await (const { kind } of boxesOf(handle, 0, (await handle.stat()).size)) {
    if (kind === 'moov' || kind === 'mdat') counts[kind] += 1;
    left -= 1;
    if (left === 0) break;
  }
  return counts.moov > 1 && counts.mdat > 1;
}

function isJoined(): Failed {
  return new Failed('file_damaged', 'another file begins behind its own end');
}

/** Returns true when another head stands behind the first one, at a byte or behind it. */
async function hasTwo(
  file: string,
  [mark, distance, more]: readonly [string, number, string],
  from: number,
  signal: AbortSignal,
): Promise<boolean> {
  const handle = await openRegular(file);
  let [found, passed, rest] = [0, 0, ''];
  for await (const piece of handle.createReadStream({ highWaterMark: 2 ** 20, encoding: 'latin1', signal })) {
    const text: string = rest + piece;
    let at = text.indexOf(mark);
    for (; at >= 0 && at + headBytes <= text.length; at = text.indexOf(mark, at + 1)) {
      if (text.startsWith(more, at + distance) && (found === 0 || passed + at >= from)) found += 1;
    }
    if (found > 1) return true;
    rest = text.slice(at >= 0 ? at : 1 - headBytes);
    passed += text.length - rest.length;
  }
  return false;
}

/** Returns the bytes at which the media of a file, and the whole of it, end as its head says; zero for what it does not know. */
async function toldEnds(handle: FileHandle, format: string, streams: FileProbe['streams']) {
  if (/^(wav|avi|aiff|caf)$/.test(format)) return await chunkEnds(handle);
  const end = format === 'asf' ? await asfEnd(handle) : format === 'mp3' ? await mp3End(handle, streams) : 0;
  return { media: end, whole: end };
}

/** Reads the lengths of a RIFF, AIFF or CAF. Readers do not look at that of the whole, and programs leave it wrong. */
async function chunkEnds(handle: FileHandle) {
  const { size } = await handle.stat();
  const kind = (await readAt(handle, 0, 4)).toString('latin1');
  if (!/^(RIFF|FORM|caff)$/.test(kind)) return { media: 0, whole: 0 };
  const isCaf = kind === 'caff';
  const [first, before, unit] = isCaf ? [8, 12, 1] : [12, 8, 2];
  const chunkAt = async (at: number) => {
    const head = await readAt(handle, at, 12);
    const bytes = isCaf
      ? Number(head.readBigInt64BE(4))
      : kind === 'RIFF'
        ? head.readUInt32LE(4)
        : head.readUInt32BE(4);
    // A CAF tells an unknown length by -1.
    const isTold = bytes > 0 && (isCaf || bytes < unknownBytes) && (bytes < leastRound || bytes % roundBytes > 0);
    return {
      name: head.toString('latin1'),
      next: at + before + bytes + (bytes % unit),
      end: isTold ? at + before + bytes : 0,
    };
  };
  const whole = isCaf ? 0 : (await chunkAt(0)).end;
  let at = first;
  for (let left = maxBoxes; at >= first && at + 12 <= size && left > 0; left -= 1) {
    const { name, next, end } = await chunkAt(at);
    if (/^(data|SSND|LIST....movi)/s.test(name)) return { media: end, whole };
    at = next;
  }
  return { media: 0, whole };
}

/** Returns where a file of Windows Media ends by what its head tells of the whole and of the media, of which a change may have left one. */
async function asfEnd(handle: FileHandle): Promise<number> {
  const beginning = await readAt(handle, 0, beginningBytes);
  // Behind 16 bytes of name and 8 of length: id, bytes of the file, and, much later, whether these are known.
  const at = beginning.indexOf(asfProperties);
  if (at < 0 || at + 92 > beginning.length || (beginning.readUInt32LE(at + 88) & 1) !== 0) return 0;
  const headEnd = Number(beginning.readBigUInt64LE(16));
  const mediaBytes = Number((await readAt(handle, headEnd + 16, 8)).readBigUInt64LE());
  const whole = Number(beginning.readBigUInt64LE(at + 40));
  return mediaBytes > 0 ? Math.min(whole, headEnd + mediaBytes) : whole;
}

/** Returns where an MP3 ends by what its first frame tells, as Xing or VBRI; zero for one that does not tell, or has all frames that it tells of. */
async function mp3End(handle: FileHandle, streams: FileProbe['streams']): Promise<number> {
  const tag = await readAt(handle, 0, 10);
  const tagBytes = 10 + tag.subarray(6).reduce((sum, each) => 128 * sum + each, 0);
  const from = tag.toString('latin1', 0, 3) === 'ID3' ? tagBytes : 0;
  const frame = await readAt(handle, from, 96);
  const at = frame.toString('latin1', 0, 64).search(/Xing|Info|VBRI/);
  if (frame[0] !== 0xff || at < 0) return 0;
  const isVbri = frame[at] === 0x56;
  const flags = frame.readUInt32BE(at + 4);
  const [bytesAt, framesAt] = isVbri ? [at + 10, at + 14] : [at + 8 + 4 * (flags & 1), at + 8];
  if (!isVbri && (flags & 2) === 0) return 0;
  const frames = isVbri || (flags & 1) > 0 ? frame.readUInt32BE(framesAt) : Number.POSITIVE_INFINITY;
  // The length may be that of a file with another tag; of a large file no frames were counted.
  const counted = streams.find(({ kind }) => kind === 'audio')?.counted ?? 0;
  return counted < (1 - maxLacking) * frames ? from + frame.readUInt32BE(bytesAt) : 0;
}

/** Returns true for an FLV that ends inside of a tag, or whose last tag is not as long as it says behind it. */
export async function endsInsideTag(file: string): Promise<boolean> {
  await using handle = await openRegular(file);
  const { size } = await handle.stat();
  const length = (await readAt(handle, size - 4, 4)).readUInt32BE();
  const head = await readAt(handle, size - 4 - length, 4);
  return head.readUIntBE(1, 3) + 11 !== length;
}

/** Returns bytes of a file; behind its end they are zeros. */
async function readAt(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const at = Math.min(Math.max(0, position), (await handle.stat()).size);
  const { buffer } = await handle.read({ buffer: Buffer.alloc(length), position: at });
  return buffer;
}
