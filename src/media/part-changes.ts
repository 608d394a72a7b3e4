import { openRegular } from './child-folder.ts';
import type { ChosenFormat } from './choose-formats.ts';
import type { FileProbe } from './probe-file.ts';
import { Failed } from './tools.ts';
import { followClock } from './transport-clock.ts';
import { followTables } from './transport-tables.ts';

/** Called for each unit of AAC, for each section and packet of a transport stream, and for each page of an Ogg. */
interface Notes {
  readonly sound: (number: number, config: number) => void;
  readonly section: (section: Buffer) => void;
  readonly packet: (number: number, header: Buffer) => void;
  readonly page: (beginning: string | null) => void;
}

const packetBytes = 188;
/** Head of a page of an Ogg with all of its lengths (RFC 3533, 6), and the name of a codec behind it. */
const codecBytes = 5;
const pageBytes = 27 + 255 + codecBytes;
const pageMark = 0x4f676753;

const steps: Readonly<Record<string, readonly [number, (bytes: Buffer, at: number, notes: Notes) => number]>> = {
  mpegts: [packetBytes, readPacket],
  aac: [packetBytes, readFrame],
  ogg: [pageBytes, readPage],
};

/** Changes between the parts of one file, such as a film and its advertisements: ffprobe reads the beginning alone. */
type PartChanges = Awaited<ReturnType<typeof readPartChanges>>;

/** Reads a transport stream, a file of AAC frames or an Ogg to its end; others have no such changes. */
export async function readPartChanges(file: string, format: string, signal: AbortSignal) {
  const [window, step] = steps[format] ?? [0, null];
  const [tables, clock, chain] = [followTables(), followClock(), followChain()];
  const { kindOf } = clock;
  if (step === null) return { sound: false, unread: false, cut: false, kindOf, ...tables.end() };
  const configs = new Map<number, number>();
  const everyConfig = new Set<number>();
  let changes = false;
  const notes: Notes = {
    page: chain.page,
    sound: (number, config) => {
      changes ||= (configs.get(number) ?? config) !== config;
      configs.set(number, config);
      everyConfig.add(config);
    },
    section: tables.note,
    packet: clock.note,
  };
  const handle = await openRegular(file);
  let rest = Buffer.alloc(0);
  let at = 0;
  for await (const piece of handle.createReadStream({ highWaterMark: 2 ** 20, signal })) {
    const bytes: Buffer = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    while (at + window <= bytes.length) at += step(bytes, at, notes);
    rest = Buffer.from(bytes.subarray(at));
    at = Math.max(0, at - bytes.length);
  }
  // Streams beside each other, such as languages, may differ.
  const { isChain, unread } = chain.end();
  const told = tables.end();
  return {
    ...told,
    /** AAC goes on with another sample rate or other channels: a copy would play all of it with the first ones. */
    sound: changes || isChain || (told.isRenumbered && everyConfig.size > 1),
    /** An Ogg goes on with streams that ffmpeg does not read: of another codec, or more than one. */
    unread,
    /** An Ogg without a second song ends inside of a page. */
    cut: format === 'ogg' && at > 0 && !isChain,
    kindOf,
  };
}

/** Throws a `Failed` for a part that goes on with what ffmpeg does not read, and for a direct link to an Ogg that was cut off. */
export function refuseChanges(
  { sound, unread, cut, changed }: PartChanges,
  { format, video, audio, begin }: FileProbe,
  part: ChosenFormat,
  direct: boolean,
): void {
  const played = [part.video ? video : null, part.audio ? audio : null];
  const isOther = changed.some((number) => played.some((stream) => stream?.number === number));
  if (unread || isOther || (sound && format === 'ogg' && video !== null)) {
    throw new Failed('unsupported_url', 'it goes on with other streams');
  }
  // A recording of a radio, whose clock may have begun before it, ends anywhere.
  if (direct && cut && (begin ?? 0) < 1) throw new Failed('file_damaged', 'ends inside of a page');
}

/** Follows the links of an Ogg, as a radio sends one for each song: each has headers of its own, also where all have the same sample rate. */
function followChain() {
  let [first, link, isOpen, isChain, unread] = ['', '', true, false, false];
  const close = () => {
    first ||= link;
    unread ||= link !== first;
  };
  return {
    page: (beginning: string | null): void => {
      if (beginning === null) {
        isOpen = false;
        return;
      }
      if (!isOpen) {
        close();
        [link, isOpen, isChain] = ['', true, true];
      }
      // Two tell as much as more of them: a hostile file may begin millions.
      if (link.length <= codecBytes) link += beginning;
    },
    end: () => {
      close();
      return { isChain, unread: unread || (isChain && first.length > codecBytes) };
    },
  };
}

/** Notes a packet of a transport stream that begins a unit of sound or a table; returns the bytes up to the next packet. */
function readPacket(bytes: Buffer, at: number, notes: Notes): number {
  if (bytes[at] !== 0x47) return 1;
  const flags = bytes.readUInt32BE(at);
  const [begins, adapts, hasPayload] = [flags & 0x400000, flags & 0x20, flags & 0x10];
  const payload = at + 4 + (adapts ? 1 + bytes.readUInt8(at + 4) : 0);
  const end = at + packetBytes;
  if (!begins || !hasPayload || payload + 9 >= end) return packetBytes;
  if (bytes.readUIntBE(payload, 3) !== 1) {
    notes.section(bytes.subarray(payload + 1 + bytes.readUInt8(payload), end));
    return packetBytes;
  }
  const number = (flags >> 8) & 0x1fff;
  notes.packet(number, bytes.subarray(payload, end));
  if (bytes.readUInt8(payload + 3) >> 5 === 0b110) {
    const frame = payload + 9 + bytes.readUInt8(payload + 8);
    const config = frame + 7 <= end ? configOf(bytes, frame) : null;
    if (config !== null) notes.sound(number, config);
  }
  return packetBytes;
}

/** Notes a frame of AAC; returns the bytes up to the next one, or up to what may be one. */
function readFrame(bytes: Buffer, at: number, notes: Notes): number {
  const config = configOf(bytes, at);
  const length = (bytes.readUInt32BE(at + 3) >> 13) & 0x1fff;
  if (config === null || length < 7) return 1;
  notes.sound(0, config);
  return length;
}

/** Returns kind, sample rate and channels of the AAC in an ADTS frame as one number, `null` for anything else. */
function configOf(bytes: Buffer, at: number): number | null {
  const header = bytes.readUInt32BE(at);
  return (header & 0xfff60000) >>> 0 === 0xfff00000 ? (header >> 6) & 0x3f7 : null;
}

/** Notes a page of an Ogg, with the name of its codec if it begins a stream; returns the bytes up to the next one. */
function readPage(bytes: Buffer, at: number, notes: Notes): number {
  if (bytes.readUInt32BE(at) !== pageMark) return 1;
  const payload = at + 27 + bytes.readUInt8(at + 26);
  notes.page(bytes.readUInt8(at + 5) & 2 ? bytes.toString('latin1', payload, payload + codecBytes) : null);
  return bytes.subarray(at + 27, payload).reduce((sum, length) => sum + length, payload - at);
}

/** Beginnings of the header of a song, by codec. */
const songHeads: Readonly<Record<string, string>> = { vorbis: '\x01vorbis', opus: 'OpusHead' };
/** Place of channels and sample rate in the header of a Vorbis; Opus has one rate, and tells the channels in each packet. */
const [kindAt, kindEnd] = [11, 16];

/**
 * Returns the songs in a part of an Ogg, in which ffmpeg has copied the headers of the later ones as if they were sound: a decoder passes over
 * them where the songs are alike, and otherwise only the whole tells when each of them begins.
 */
export async function songsOf(
  file: string,
  codec: string | undefined,
  signal: AbortSignal,
): Promise<'one' | 'alike' | 'unlike'> {
  const head = songHeads[codec ?? ''];
  if (head === undefined) return 'one';
  const handle = await openRegular(file);
  let first: string | undefined;
  let songs: 'one' | 'alike' | 'unlike' = 'one';
  let rest = '';
  for await (const piece of handle.createReadStream({ highWaterMark: 2 ** 20, encoding: 'latin1', signal })) {
    const text = `${rest}${piece}`;
    for (let at = text.indexOf(head); at >= 0 && at + kindEnd <= text.length; at = text.indexOf(head, at + 1)) {
      const kind = codec === 'vorbis' ? text.slice(at + kindAt, at + kindEnd) : '';
      if (first !== undefined && songs !== 'unlike') songs = kind === first ? 'alike' : 'unlike';
      first ??= kind;
    }
    rest = text.slice(1 - kindEnd);
  }
  return songs;
}
