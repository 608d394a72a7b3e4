import { MoreBytesNeeded, RdbCursor, skipRdbValue } from './rdb-values.ts';

export interface SnapshotEntry {
  readonly database: number;
  readonly key: string;
  /** Type and value as Redis serializes them: what DUMP answers, without its last ten bytes. */
  readonly value: Buffer;
  /** Milliseconds since 1970; `null` for a key that stays. */
  readonly expiresAt: number | null;
}

const headerBytes = 9;
const checksumBytes = 8;
/** Redis writes these in place of a type, before other facts than a key. */
const opcodes = {
  slot: 244,
  functions: 245,
  frequency: 249,
  idle: 248,
  fact: 250,
  size: 251,
  expiresMs: 252,
  expires: 253,
  database: 254,
  end: 255,
} as const;

/**
 * Reads a snapshot (RDB) as it arrives, and finds where each value ends. A snapshot that it does not understand wholly is an
 * error: nothing is skipped.
 */
export function makeRdbReader() {
  const state: ReaderState = { format: undefined, database: 0, isOver: false };
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  let wantedBytes = headerBytes;
  return {
    /** Returns the keys that are complete with these bytes. */
    push: (chunk: Buffer): SnapshotEntry[] => {
      if (state.isOver && chunk.length > 0) throw new Error('the snapshot goes on behind its end');
      pending.push(chunk);
      pendingBytes += chunk.length;
      if (pendingBytes < wantedBytes) return [];
      const bytes = pending.length === 1 ? chunk : Buffer.concat(pending);
      const { entries, used } = readEntries(bytes, state);
      const rest = bytes.subarray(used);
      pending = [rest];
      pendingBytes = rest.length;
      // A long value is looked at again only when twice as much of it is there.
      wantedBytes = used === 0 ? 2 * pendingBytes : pendingBytes + 1;
      return entries;
    },
    /** Returns the last keys, and the number of the format of all values; throws when the snapshot is not whole. */
    end: () => {
      // Bytes may have been held back until more of them came.
      const { entries } = readEntries(Buffer.concat(pending), state);
      if (!state.isOver || state.format === undefined) throw new Error('the snapshot has no end');
      pending = [];
      pendingBytes = 0;
      return { entries, format: state.format };
    },
  };
}

interface ReaderState {
  format: number | undefined;
  database: number;
  isOver: boolean;
}

/** Reads the keys that are complete; `used` is the number of bytes before what must be read again. */
function readEntries(bytes: Buffer, state: ReaderState): { entries: SnapshotEntry[]; used: number } {
  const entries: SnapshotEntry[] = [];
  const cursor = new RdbCursor(bytes, 0);
  let used = 0;
  try {
    state.format ??= readFormat(cursor);
    used = cursor.at;
    while (!state.isOver) {
      const entry = readNext(cursor, state);
      if (entry) entries.push(entry);
      used = cursor.at;
    }
  } catch (error) {
    if (!(error instanceof MoreBytesNeeded)) throw error;
  }
  if (state.isOver && used < bytes.length) throw new Error('the snapshot goes on behind its end');
  return { entries, used };
}

/** Reads one key with the facts about it that stand before it, or one fact about no key, for which it returns `null`. */
function readNext(cursor: RdbCursor, state: ReaderState): SnapshotEntry | null {
  let expiresAt: number | null = null;
  for (;;) {
    const type = cursor.byte();
    switch (type) {
      case opcodes.frequency:
        cursor.pass(1);
        break;
      case opcodes.idle:
        cursor.skipLengths(1);
        break;
      case opcodes.expiresMs:
        expiresAt = Number(cursor.bytes.readBigInt64LE(cursor.pass(8)));
        break;
      case opcodes.expires:
        expiresAt = cursor.bytes.readInt32LE(cursor.pass(4)) * 1000;
        break;
      case opcodes.fact:
        cursor.skipStrings(2);
        return null;
      case opcodes.functions:
        cursor.skipStrings(1);
        return null;
      case opcodes.size:
        cursor.skipLengths(2);
        return null;
      case opcodes.slot:
        cursor.skipLengths(3);
        return null;
      case opcodes.database:
        state.database = cursor.length();
        return null;
      case opcodes.end:
        cursor.pass(checksumBytes);
        state.isOver = true;
        return null;
      default:
        return { database: state.database, expiresAt, ...readKey(cursor, type) };
    }
  }
}

function readKey(cursor: RdbCursor, type: number): Pick<SnapshotEntry, 'key' | 'value'> {
  const key = cursor.readString().toString('latin1');
  const from = cursor.at;
  skipRdbValue(cursor, type);
  return { key, value: Buffer.concat([Buffer.of(type), cursor.bytes.subarray(from, cursor.at)]) };
}

function readFormat(cursor: RdbCursor): number {
  const from = cursor.pass(headerBytes);
  const written = /^(?:REDIS(\d{4})|VALKEY(\d{3}))$/.exec(cursor.bytes.toString('latin1', from, cursor.at));
  if (!written) throw new Error('this is no snapshot of Redis');
  return Number(written[1] ?? written[2]);
}
