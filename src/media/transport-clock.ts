/** Ticks of a clock in a second, and those after which it begins anew (ISO/IEC 13818-1, 2.4.3.7). */
const [secondTicks, wrapTicks] = [90_000, 2 ** 33];
/** Seconds by which ffmpeg takes a later time for one of another clock, and an earlier one. */
const [maxGapSeconds, maxBackSeconds] = [10, 0.1];
/** A hostile file may have any number of them. */
const [maxStreams, maxGaps] = [64, 200];

/** Times of the streams of a file: without long gaps; with such in one of them; or with leaps of the clock. */
export type ClockKind = 'even' | 'held' | 'leaps';

interface Timeline {
  readonly begin: number;
  last: number;
  goesBack: boolean;
  /** Begins and ends of what ffmpeg would take for leaps ahead. */
  readonly gaps: (readonly [number, number])[];
}

/**
 * Follows the times of the streams of a transport stream. Its clock leaps in all of them, while a picture that is held, or sound that pauses, leaves
 * the other stream to go on: ffmpeg looks at each alone, and joins what is on both sides of either.
 */
export function followClock() {
  const streams = new Map<number, Timeline>();
  let first: number | null = null;
  return {
    /** Notes the time at which a packet of a stream is decoded, from the bytes of its header on. */
    note: (number: number, header: Buffer): void => {
      const ticks = decodedAt(header);
      if (ticks === null) return;
      const found = streams.get(number);
      first ??= ticks;
      const last = found?.last ?? 0;
      const second = last + signed(ticks - first - last * secondTicks) / secondTicks;
      if (found === undefined) {
        if (streams.size < maxStreams) streams.set(number, { begin: second, last: second, goesBack: false, gaps: [] });
        return;
      }
      found.goesBack ||= second < last - maxBackSeconds;
      if (second > last + maxGapSeconds && found.gaps.length <= maxGaps) found.gaps.push([last, second]);
      found.last = second;
    },
    /** Returns how the times of streams go on: `held` where one of two goes on amid each long gap of the other. */
    kindOf: (numbers: readonly (number | null)[]): ClockKind => {
      const all = numbers.flatMap((number) => streams.get(number ?? -1) ?? []);
      const [one, other] = all;
      if (all.every(({ goesBack, gaps }) => !goesBack && gaps.length === 0)) return 'even';
      if (one === undefined || other === undefined) return 'leaps';
      const isClear = all.every(({ goesBack, gaps }) => !goesBack && gaps.length <= maxGaps);
      return isClear && goesOnAmid(one, other) && goesOnAmid(other, one) ? 'held' : 'leaps';
    },
  };
}

/** Returns true for a stream that has times amid all gaps of another one. */
function goesOnAmid({ begin, last, gaps }: Timeline, other: Timeline): boolean {
  return other.gaps.every(([from, to]) => {
    const amid = (from + to) / 2;
    return begin < amid && last > amid && gaps.every(([start, end]) => end <= from || start >= to);
  });
}

function signed(ticks: number): number {
  const rest = ((ticks % wrapTicks) + wrapTicks) % wrapTicks;
  return rest < wrapTicks / 2 ? rest : rest - wrapTicks;
}

/** Returns the ticks in the header of a packet of a picture or of sound, `null` where it has none (2.4.3.6). */
function decodedAt(header: Buffer): number | null {
  if (header.length < 19) return null;
  const [kind, flags] = [header.readUInt8(3), header.readUInt8(7)];
  if ((kind !== 0xbd && kind >> 5 !== 0b110 && kind >> 4 !== 0b1110) || !(flags & 0x80)) return null;
  const at = flags & 0x40 ? 14 : 9;
  const high = (header.readUInt8(at) >> 1) & 7;
  return high * 2 ** 30 + (header.readUInt16BE(at + 1) >> 1) * 2 ** 15 + (header.readUInt16BE(at + 3) >> 1);
}
