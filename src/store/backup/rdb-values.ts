/** Thrown inside when the bytes at hand end in the middle of an entry. */
export class MoreBytesNeeded extends Error {}

const integerBytes = [1, 2, 4];
const compressed = 3;

/** Reads the fields of a file in the format of Redis (RDB), from a position on; throws `MoreBytesNeeded` at the end of the bytes. */
export class RdbCursor {
  readonly bytes: Buffer;
  at: number;

  constructor(bytes: Buffer, at: number) {
    this.bytes = bytes;
    this.at = at;
  }

  /** Returns the position before these bytes, and goes behind them. */
  pass(count: number): number {
    const from = this.at;
    if (from + count > this.bytes.length) throw new MoreBytesNeeded();
    this.at = from + count;
    return from;
  }

  byte(): number {
    return this.bytes[this.pass(1)]!;
  }

  length(): number {
    const { value, isPlain } = this.#lengthOrKind();
    if (!isPlain) throw new Error('a length of the snapshot is none');
    return value;
  }

  skipLengths(count: number): void {
    for (let n = 0; n < count; n++) this.length();
  }

  skipStrings(count: number): void {
    for (let n = 0; n < count; n++) this.#string();
  }

  readString(): Buffer {
    const { kind, from, plainBytes } = this.#string();
    const content = this.bytes.subarray(from, this.at);
    if (kind === 'plain') return content;
    if (kind === 'compressed') return expand(content, plainBytes);
    return Buffer.from(String(content.readIntLE(0, content.length)));
  }

  /** A number, or one of the kinds of strings that have no length: an integer, or compressed text. */
  #lengthOrKind(): { value: number; isPlain: boolean } {
    const first = this.byte();
    const value = first & 0x3f;
    if (first < 0x40) return { value, isPlain: true };
    if (first < 0x80) return { value: (value << 8) | this.byte(), isPlain: true };
    if (first === 0x80) return { value: this.bytes.readUInt32BE(this.pass(4)), isPlain: true };
    if (first === 0x81) return { value: Number(this.bytes.readBigUInt64BE(this.pass(8))), isPlain: true };
    return { value, isPlain: false };
  }

  #string(): { kind: 'plain' | 'integer' | 'compressed'; from: number; plainBytes: number } {
    const { value, isPlain } = this.#lengthOrKind();
    if (isPlain) return { kind: 'plain', from: this.pass(value), plainBytes: value };
    const width = integerBytes[value];
    if (width !== undefined) return { kind: 'integer', from: this.pass(width), plainBytes: width };
    if (value !== compressed) throw new Error(`the snapshot has a string of the unknown kind ${value}`);
    const [bytes, plainBytes] = [this.length(), this.length()];
    return { kind: 'compressed', from: this.pass(bytes), plainBytes };
  }
}

/** The types that Redis 7.0 or newer writes. */
const skipValue: Readonly<Record<number, (cursor: RdbCursor) => void>> = {
  0: (cursor) => cursor.skipStrings(1),
  2: (cursor) => cursor.skipStrings(cursor.length()),
  4: (cursor) => cursor.skipStrings(2 * cursor.length()),
  5: (cursor) => {
    for (let left = cursor.length(); left > 0; left--) {
      cursor.skipStrings(1);
      cursor.pass(8);
    }
  },
  // Small sets, hashes and sorted sets are one string.
  ...Object.fromEntries([11, 16, 17, 20].map((type) => [type, (cursor) => cursor.skipStrings(1)])),
  18: (cursor) => {
    for (let left = cursor.length(); left > 0; left--) {
      cursor.length();
      cursor.skipStrings(1);
    }
  },
  19: (cursor) => skipStream(cursor, 8),
  21: (cursor) => skipStream(cursor, 16),
};

export function skipRdbValue(cursor: RdbCursor, type: number): void {
  const skip = skipValue[type];
  if (!skip) throw new Error(`the snapshot has a value of type ${type}, which this release does not know`);
  skip(cursor);
}

/** `consumerBytes`: the times of a consumer. */
function skipStream(cursor: RdbCursor, consumerBytes: number): void {
  cursor.skipStrings(2 * cursor.length());
  cursor.skipLengths(8);
  for (let groups = cursor.length(); groups > 0; groups--) {
    cursor.skipStrings(1);
    cursor.skipLengths(3);
    for (let pending = cursor.length(); pending > 0; pending--) {
      cursor.pass(24);
      cursor.length();
    }
    for (let consumers = cursor.length(); consumers > 0; consumers--) {
      cursor.skipStrings(1);
      cursor.pass(consumerBytes);
      cursor.pass(16 * cursor.length());
    }
  }
}

/** Expands LZF, as Redis compresses long strings. */
function expand(packed: Buffer, plainBytes: number): Buffer {
  const plain = Buffer.alloc(plainBytes);
  let [from, to] = [0, 0];
  while (from < packed.length) {
    const control = packed[from++]!;
    if (control < 32) {
      packed.copy(plain, to, from, from + control + 1);
      from += control + 1;
      to += control + 1;
      continue;
    }
    let count = control >> 5;
    if (count === 7) count += packed[from++]!;
    let back = to - ((control & 0x1f) << 8) - packed[from++]! - 1;
    if (back < 0) throw new Error('a compressed string of the snapshot is broken');
    // Byte by byte: what is copied may be what was just written.
    for (count += 2; count > 0; count--) plain[to++] = plain[back++]!;
  }
  if (to !== plainBytes) throw new Error('a compressed string of the snapshot is broken');
  return plain;
}
