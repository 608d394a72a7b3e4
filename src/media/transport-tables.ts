/** Kinds of pictures and sound, which programs call by these numbers (ISO/IEC 13818-1, 2.4.4.10, and ATSC A/53-3), by the codec with which ffmpeg reads them. */
const codecs = {
  picture: new Map([
    [0x01, 'mpeg'],
    [0x02, 'mpeg'],
    [0x10, 'mpeg4'],
    [0x1b, 'h264'],
    [0x24, 'hevc'],
  ]),
  sound: new Map([
    [0x03, 'mp3'],
    [0x04, 'mp3'],
    [0x0f, 'aac'],
    [0x11, 'latm'],
    [0x81, 'ac3'],
    [0x87, 'eac3'],
  ]),
} as const satisfies Record<string, ReadonlyMap<number, string>>;

export type Medium = keyof typeof codecs;
const media: readonly Medium[] = ['picture', 'sound'];

/** A stream of a table, with its place in it. */
interface TableEntry {
  readonly place: number;
  readonly number: number;
  readonly codec: string | undefined;
}

interface Table {
  readonly program: number;
  readonly streams: readonly TableEntry[];
  /** False for one of which the rest stands in another packet. */
  readonly isWhole: boolean;
}

/** A hostile file may have thousands of programs. */
const maxPrograms = 256;

/**
 * Follows the tables of a transport stream that list the streams of its programs (PMT). ffmpeg plays the first picture and the first sound of a
 * program under the numbers that they began with, or under others in the same place of the table, and with the codec that they began with.
 */
export function followTables() {
  const programs = new Map<number, Partial<Record<Medium, TableEntry>>>();
  const [changed, unlisted] = [new Set<number>(), new Set<Medium>()];
  let isRenumbered = false;
  const follow = (medium: Medium, begun: TableEntry, { streams, isWhole }: Table) => {
    const same = streams.find(({ number }) => number === begun.number) ?? streams[begun.place];
    if (same?.codec === begun.codec) isRenumbered ||= same?.number !== begun.number;
    // Without any, an advertisement is silent.
    else if (isWhole && streams.some(({ codec }) => isOf(medium, codec))) changed.add(begun.number);
  };
  return {
    note: (section: Buffer): void => {
      const table = readTable(section);
      if (table === null) return;
      const known = programs.get(table.program);
      const begun = known ?? {};
      if (known === undefined && programs.size < maxPrograms) programs.set(table.program, begun);
      for (const medium of media) {
        const first = begun[medium];
        if (first !== undefined) follow(medium, first, table);
        else begun[medium] = table.streams.find(({ codec }) => isOf(medium, codec));
        if (first === undefined && begun[medium] !== undefined && known !== undefined) unlisted.add(medium);
      }
    },
    end: () => ({
      /** A stream goes on under another number (PID), which ffmpeg takes for another stream. */
      isRenumbered,
      /** Numbers of pictures and sound that go on in another codec, or place of the table: ffmpeg would take them for the first one, or leave them out. */
      changed: [...changed],
      /** Pictures or sound that a first table does not list. */
      unlisted: [...unlisted],
    }),
  };
}

function isOf(medium: Medium, codec: string | undefined): boolean {
  return codec !== undefined && [...codecs[medium].values()].includes(codec);
}

/** Remainders of all bytes by the polynomial of tables (ISO/IEC 13818-1, annex A); zlib counts the bits of its own from the other end. */
const remainders = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte << 24;
  for (let bit = 0; bit < 8; bit += 1) rest = (rest << 1) ^ (rest < 0 ? 0x04c11db7 : 0);
  return rest;
});

/** Returns true for a table that arrived as its check tells, which stands at its end: a broadcast has wrong bits, and ffmpeg passes such tables over. */
function isIntact(section: Buffer): boolean {
  let rest = -1;
  for (const byte of section) rest = (rest << 8) ^ (remainders[(rest >>> 24) ^ byte] ?? 0);
  return rest === 0;
}

/** Reads a table (ISO/IEC 13818-1, 2.4.4.8) that holds now, not from the next one on; `null` for anything else. */
function readTable(section: Buffer): Table | null {
  if (section.length < 12 || section[0] !== 2 || (section.readUInt8(5) & 1) === 0) return null;
  const whole = 3 + (section.readUInt16BE(1) & 0xfff) - 4;
  if (whole + 4 <= section.length && !isIntact(section.subarray(0, whole + 4))) return null;
  const end = Math.min(section.length, whole);
  const streams: TableEntry[] = [];
  for (
    let at = 12 + (section.readUInt16BE(10) & 0xfff);
    at + 5 <= end;
    at += 5 + (section.readUInt16BE(at + 3) & 0xfff)
  ) {
    const kind = section.readUInt8(at);
    const codec = codecs.picture.get(kind) ?? codecs.sound.get(kind);
    streams.push({ place: streams.length, number: section.readUInt16BE(at + 1) & 0x1fff, codec });
  }
  return { program: section.readUInt16BE(3), streams, isWhole: whole + 4 <= section.length };
}
