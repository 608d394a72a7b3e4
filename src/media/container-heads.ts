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
/** Beginning in which the properties of Windows Media stand, and all that RIFF and AIFF have before their media. */
const beginningBytes = 2 ** 16;
const asfProperties = Buffer.from('a1dcab8c47a9cf118ee400c00c205365', 'hex');
/** Length from which programs that write into a pipe take one for an unknown length. */
const unknownBytes = 0x7fff0000;
/** Share of its promised bytes that a file may lack (D92). */
const maxLacking = 0.05;
/** A hostile MP4 may have millions. */
const maxBoxes = 1000;

/** Throws a `Failed` for a file of which a part would be delivered for the whole: others were joined to it, or it is shorter than its head says. */
export async function refuseParts(file: string, { format, streams }: FileProbe, signal: AbortSignal): Promise<void> {
  // An MP4 in pieces promises no packets.
  const isIndexed = format.startsWith('mov') && streams.every(({ promised }) => promised !== null);
  if (isIndexed && (await hasTwoIndexes(file))) throw isJoined();
  await using handle = await openRegular(file);
  const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(beginningBytes) });
  const { media, whole } = toldEnds(buffer.subarray(0, bytesRead));
  const head = heads[format];
  // The reader of a WAV or AIFF whose length is not told reads to the end of the file, and those of other formats may stop anywhere.
  const from = /^(wav|aiff)$/.test(format) ? Math.max(media, whole) || Number.POSITIVE_INFINITY : 0;
  if (head !== undefined && (await hasTwo(file, head, from, signal))) throw isJoined();
  if (!/^(wav|avi|aiff|asf)$/.test(format)) return;
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

/** Bytes at which the media of a file, and the whole of it, end as its head says; zero for what it does not know. */
interface ToldEnds {
  readonly media: number;
  readonly whole: number;
}

function toldEnds(beginning: Buffer): ToldEnds {
  const kind = beginning.toString('latin1', 0, 4);
  if (kind === 'RIFF' || kind === 'FORM') return chunkEnds(beginning, kind === 'RIFF');
  // Behind 16 bytes of name and 8 of length: id, bytes of the file, and, much later, whether these are known.
  const at = beginning.indexOf(asfProperties);
  const isTold = at >= 0 && at + 92 <= beginning.length && (beginning.readUInt32LE(at + 88) & 1) === 0;
  const bytes = isTold ? Number(beginning.readBigUInt64LE(at + 40)) : 0;
  return { media: bytes, whole: bytes };
}

/** Reads the lengths of a RIFF or AIFF. Readers do not look at that of the whole, and programs leave it wrong. */
function chunkEnds(beginning: Buffer, isLittle: boolean): ToldEnds {
  const sizeAt = (at: number) => (isLittle ? beginning.readUInt32LE(at + 4) : beginning.readUInt32BE(at + 4));
  const endAt = (at: number) => (sizeAt(at) > 0 && sizeAt(at) < unknownBytes ? at + 8 + sizeAt(at) : 0);
  for (let at = 12; at + 12 <= beginning.length; at += 8 + sizeAt(at) + (sizeAt(at) % 2)) {
    const isMedia = /^(data|SSND|LIST....movi)/s.test(beginning.toString('latin1', at, at + 12));
    if (isMedia) return { media: endAt(at), whole: endAt(0) };
  }
  return { media: 0, whole: endAt(0) };
}
