import { readFileSync } from 'node:fs';
import { onceAMinute } from '../../base/once-a-minute.ts';

/** The clock of Redis, as this process knows it. */
export type RecordClock = Pick<RedisClock, 'now' | 'isSteady' | 'machineAheadMs'>;

/** A machine whose clock is further off than this says so, and does not get the lead. */
export const maxClockDifferenceMs = 2_000;
const maxJumpMs = 5 * 60_000;
const steadyMs = 10 * 60_000;
const rereadFileMs = 100;
/** About 3,000 years: beyond it a time could no longer be written as a date. */
const maxOffsetSeconds = 1e11;

/**
 * Follows TIME of Redis by readings, and the monotonic clock of this process in between: a change of this machine's clock
 * changes nothing. A jump is a change of TIME by 5 minutes more, or less, than passed on the monotonic clock.
 */
export class RedisClock {
  readonly #monotonic: () => number;
  readonly #machine: () => number;
  /** TIME minus the monotonic clock, in milliseconds; `null` before the first reading. */
  #aheadMs: number | null = null;
  /** The same when the last 10 minutes began. */
  #referenceMs = 0;
  #referenceAt = 0;
  #isSteady = true;

  constructor(monotonic = () => performance.now(), machine = Date.now) {
    this.#monotonic = monotonic;
    this.#machine = machine;
  }

  /** Milliseconds since 1970, as TIME of Redis would say now. */
  now(): number {
    if (this.#aheadMs === null) throw new Error('TIME of Redis was never read');
    return Math.floor(this.#monotonic() + this.#aheadMs);
  }

  /** False for 10 minutes after TIME has jumped: nothing may be removed or ended for its age then. */
  isSteady(): boolean {
    return this.#isSteady;
  }

  /** Milliseconds by which the clock of this machine is ahead of that of Redis; negative when it is behind. */
  machineAheadMs(): number {
    return this.#machine() - this.now();
  }

  /** Asks for TIME and takes over the answer: seconds and microseconds. */
  async read(ask: () => Promise<unknown>): Promise<void> {
    const before = this.#monotonic();
    const [seconds, microseconds] = (await ask()) as readonly unknown[];
    this.#note(before, Number(seconds) * 1000 + Number(microseconds) / 1000, this.#monotonic());
  }

  /** A slow answer says only between which values the difference lies; what is known more exactly stays. */
  #note(before: number, redisMs: number, after: number): void {
    const [least, most] = [redisMs - after, redisMs - before];
    const known = this.#aheadMs ?? (least + most) / 2;
    const aheadMs = Math.min(Math.max(known, least), most);
    const isFirst = this.#aheadMs === null;
    this.#aheadMs = aheadMs;
    const hasJumped = !isFirst && Math.abs(aheadMs - this.#referenceMs) > maxJumpMs;
    if (!isFirst && !hasJumped && after - this.#referenceAt < steadyMs) return;
    this.#referenceMs = aheadMs;
    this.#referenceAt = after;
    this.#isSteady = !hasJumped;
  }
}

/**
 * Returns a clock that follows another one, for a rehearsal ahead by the seconds in the file, which is read again every 100 ms. `warn`
 * is called, once a minute, while the file holds anything else: the last offset then stays.
 */
export function makeClock(followed: Pick<RecordClock, 'now'>, file?: string, warn = (): void => {}) {
  let offsetMs = 0;
  const complain = onceAMinute(warn);
  const read = (path: string) => {
    const text = readText(path);
    const givenMs = offsetOf(text);
    if (givenMs !== null) offsetMs = givenMs;
    else if (text !== '') complain();
  };
  if (file) read(file);
  const timer = file ? setInterval(read, rereadFileMs, file).unref() : undefined;
  return {
    /** Milliseconds since 1970, the offset included. */
    now: () => followed.now() + offsetMs,
    /** Milliseconds by which this clock is ahead of the one that it follows. */
    offset: () => offsetMs,
    /** Stops reading the file; the clock goes on with its last offset. */
    close: () => clearInterval(timer),
  };
}

/** Returns '' while the file is missing or empty, as it may be while it is replaced. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}

function offsetOf(text: string): number | null {
  const seconds = /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  return Math.abs(seconds) <= maxOffsetSeconds ? Math.round(seconds * 1000) : null;
}

export class RedisTimeout extends Error {
  constructor(milliseconds = timeoutMs) {
    super(`No answer within ${Math.round(milliseconds)} ms`);
  }
}

export const timeoutMs = 1_500;
/** Begins when the first timer has run: a process that was too busy to read an answer still gets this long for it. */
const lastPartMs = 300;

/** Calls `late` after some time, of which the last part begins anew in a process that was busy. Returns a function that ends the wait. */
export function whenLate(milliseconds: number, late: () => void, onLastPart = (): void => {}): () => void {
  let timer = setTimeout(() => {
    timer = setTimeout(late, lastPartMs);
    onLastPart();
  }, milliseconds - lastPartMs);
  return () => clearTimeout(timer);
}

/**
 * Rejects with `RedisTimeout` when a promise is not settled in time. `onLastPart` is told when that is, by `performance.now`:
 * later than planned in a process that was busy.
 */
export function withTimeout<T>(
  promise: Promise<T>,
  milliseconds = timeoutMs,
  onLastPart = (_endsAt: number): void => {},
): Promise<T> {
  const { promise: result, resolve, reject } = Promise.withResolvers<T>();
  const late = () => reject(new RedisTimeout(milliseconds));
  const endWait = whenLate(milliseconds, late, () => onLastPart(performance.now() + lastPartMs));
  promise.then(resolve, reject).finally(endWait);
  return result;
}
