import { readFileSync } from 'node:fs';

const everyMs = 100;
/** About 3,000 years: beyond it a time could no longer be written as a date. */
const maxOffsetSeconds = 1e11;

export interface Clock {
  /** Milliseconds since 1970, the offset included. */
  readonly now: () => number;
  /** Milliseconds by which this clock is ahead of the one that it follows. */
  readonly offset: () => number;
  /** Stops reading the file; the clock goes on with its last offset. */
  readonly close: () => void;
}

/** Returns a clock that follows another one, for a rehearsal ahead by the seconds in the file, which is read again every 100 ms. */
export function makeClock(followed: () => number, file?: string): Clock {
  let offsetMs = 0;
  const read = (path: string) => {
    offsetMs = readOffsetMs(path) ?? offsetMs;
  };
  if (file) read(file);
  const timer = file ? setInterval(read, everyMs, file).unref() : undefined;
  return {
    now: () => followed() + offsetMs,
    offset: () => offsetMs,
    close: () => clearInterval(timer),
  };
}

function readOffsetMs(path: string): number | undefined {
  try {
    const text = readFileSync(path, 'utf8').trim();
    const seconds = /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
    return Math.abs(seconds) <= maxOffsetSeconds ? Math.round(seconds * 1000) : undefined;
  } catch {
    // The file may be missing while it is replaced: the last value holds until the next reading.
    return undefined;
  }
}
