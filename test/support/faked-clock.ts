import { globSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** libfaketime of Debian's package `faketime`; absent where that is not installed. */
export const fakeTimeLibrary = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1')[0];

/** The clock of a process that a test may move; its monotonic clock and the times of files stay. */
export interface FakedClock {
  readonly env: Readonly<Record<string, string>>;
  /** Moves it to so many seconds from that of this machine. */
  move(seconds: number): void;
}

export function fakeClock(folder: string, name: string): FakedClock {
  const file = join(folder, `${name}.time`);
  const move = (seconds: number) => {
    writeFileSync(`${file}.new`, `${seconds < 0 ? '' : '+'}${seconds}\n`);
    renameSync(`${file}.new`, file);
  };
  move(0);
  const env = {
    // The malloc of redis-server asks for the time before libfaketime is ready: with that of libc it does not.
    ...{ LD_PRELOAD: `${fakeTimeLibrary}:libc.so.6`, FAKETIME_TIMESTAMP_FILE: file, FAKETIME_NO_CACHE: '1' },
    ...{ FAKETIME_DONT_FAKE_MONOTONIC: '1', NO_FAKE_STAT: '1' },
  };
  return { env, move };
}
