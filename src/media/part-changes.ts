import { openRegular } from './child-folder.ts';

/** Changes between the parts of one file, such as a film and its advertisements: ffprobe reads the beginning alone. */
interface PartChanges {
  /** True when AAC goes on with another sample rate or other channels: a copy would play all of it with the first ones. */
  readonly sound: boolean;
  /** True when a stream goes on under another number (PID), which ffmpeg takes for another stream. */
  readonly numbers: boolean;
}

/** Packets of one number and, for AAC, of one kind: where in the file they begin and end. */
interface Span {
  readonly number: number;
  readonly kind: 'audio' | 'video';
  readonly config: number | null;
  readonly first: number;
  last: number;
}

type NotePacket = (number: number, kind: Span['kind'], config: number | null) => void;

const packetBytes = 188;
/** A hostile file may name thousands of streams. */
const maxSpans = 256;

/** Reads a transport stream or a file of AAC frames to its end; others have no such changes. */
export async function readPartChanges(file: string, format: string, signal: AbortSignal): Promise<PartChanges> {
  const step = format === 'mpegts' ? readPacket : format === 'aac' ? readFrame : null;
  if (step === null) return { sound: false, numbers: false };
  const spans = new Map<string, Span>();
  let place = 0;
  const note: NotePacket = (number, kind, config) => {
    place += 1;
    const name = `${number} ${config}`;
    const span = spans.get(name);
    if (span !== undefined) span.last = place;
    else if (spans.size < maxSpans) spans.set(name, { number, kind, config, first: place, last: place });
  };
  const handle = await openRegular(file);
  let rest = Buffer.alloc(0);
  let at = 0;
  for await (const piece of handle.createReadStream({ highWaterMark: 2 ** 20, signal })) {
    const bytes: Buffer = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    while (at + packetBytes <= bytes.length) at += step(bytes, at, note);
    rest = Buffer.from(bytes.subarray(at));
    at = Math.max(0, at - bytes.length);
  }
  return compare([...spans.values()]);
}

function compare(spans: readonly Span[]): PartChanges {
  const pairs = spans.flatMap((one, n) => spans.slice(n + 1).map((other) => [one, other] as const));
  // Streams beside each other, such as languages, may differ.
  const isBehind = (one: Span, other: Span) => one.last < other.first || other.last < one.first;
  const differ = (one: Span, other: Span) =>
    one.config !== null && other.config !== null && one.config !== other.config;
  return {
    sound: pairs.some(([one, other]) => differ(one, other) && (one.number === other.number || isBehind(one, other))),
    numbers: pairs.some(
      ([one, other]) => one.kind === other.kind && one.number !== other.number && isBehind(one, other),
    ),
  };
}

/** Notes a packet of a transport stream that begins a unit of sound or picture; returns the bytes up to the next packet. */
function readPacket(bytes: Buffer, at: number, note: NotePacket): number {
  if (bytes[at] !== 0x47) return 1;
  const flags = bytes.readUInt32BE(at);
  const [begins, adapts, hasPayload] = [flags & 0x400000, flags & 0x20, flags & 0x10];
  const payload = at + 4 + (adapts ? 1 + bytes.readUInt8(at + 4) : 0);
  const header = payload + 9;
  if (!begins || !hasPayload || header >= at + packetBytes || bytes.readUIntBE(payload, 3) !== 1) return packetBytes;
  const [number, id] = [(flags >> 8) & 0x1fff, bytes.readUInt8(payload + 3)];
  const frame = header + bytes.readUInt8(payload + 8);
  if (id >> 5 === 0b110) note(number, 'audio', frame + 7 <= at + packetBytes ? configOf(bytes, frame) : null);
  if (id >> 4 === 0b1110) note(number, 'video', null);
  return packetBytes;
}

/** Notes a frame of AAC; returns the bytes up to the next one, or up to what may be one. */
function readFrame(bytes: Buffer, at: number, note: NotePacket): number {
  const config = configOf(bytes, at);
  const length = (bytes.readUInt32BE(at + 3) >> 13) & 0x1fff;
  if (config === null || length < 7) return 1;
  note(0, 'audio', config);
  return length;
}

/** Returns kind, sample rate and channels of the AAC in an ADTS frame as one number, `null` for anything else. */
function configOf(bytes: Buffer, at: number): number | null {
  const header = bytes.readUInt32BE(at);
  return (header & 0xfff60000) >>> 0 === 0xfff00000 ? (header >> 6) & 0x3f7 : null;
}
