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
/** Head of Windows Media with its file properties. */
const asfBytes = 2 ** 16;
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
  const head = heads[format];
  if (head !== undefined && (await hasTwo(file, head, signal))) throw isJoined();
  if (!/^(wav|avi|aiff|asf)$/.test(format)) return;
  await using handle = await openRegular(file);
  const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(asfBytes) });
  const [{ size }, promised] = [await handle.stat(), promisedBytes(buffer.subarray(0, bytesRead))];
  if (size < (1 - maxLacking) * promised) throw new Failed('file_damaged', `${size} of ${promised} bytes`);
}

async function hasTwoIndexes(file: string): Promise<boolean> {
  await using handle = await openRegular(file);
  let [indexes, left] = [0, maxBoxes];
  for await (const { kind } of boxesOf(handle, 0, (await handle.stat()).size)) {
    indexes += kind === 'moov' ? 1 : 0;
    left -= 1;
    if (indexes > 1 || left === 0) break;
  }
  return indexes > 1;
}

function isJoined(): Failed {
  return new Failed('file_damaged', 'another file begins behind its own end');
}

async function hasTwo(file: string, [mark, place, more]: readonly [string, number, string], signal: AbortSignal) {
  const handle = await openRegular(file);
  let [found, rest] = [0, ''];
  for await (const piece of handle.createReadStream({ highWaterMark: 2 ** 20, encoding: 'latin1', signal })) {
    const text: string = rest + piece;
    let at = text.indexOf(mark);
    for (; at >= 0 && at + headBytes <= text.length; at = text.indexOf(mark, at + 1)) {
      if (text.startsWith(more, at + place)) found += 1;
    }
    if (found > 1) return true;
    rest = text.slice(at >= 0 ? at : 1 - headBytes);
  }
  return false;
}

/** Returns the bytes that a head promises of its file, zero when it does not know them. */
function promisedBytes(beginning: Buffer): number {
  const kind = beginning.toString('latin1', 0, 4);
  if (kind === 'RIFF' || kind === 'FORM') {
    const told = kind === 'RIFF' ? beginning.readUInt32LE(4) : beginning.readUInt32BE(4);
    return told < unknownBytes ? told + 8 : 0;
  }
  // Behind 16 bytes of name and 8 of length: id, bytes of the file, and, much later, whether these are known.
  const at = beginning.indexOf(asfProperties);
  if (at < 0 || at + 92 > beginning.length || (beginning.readUInt32LE(at + 88) & 1) !== 0) return 0;
  return Number(beginning.readBigUInt64LE(at + 40));
}
