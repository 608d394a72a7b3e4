/** CRC-64 of Redis ("Jones", reflected) in two halves of 32 bits: with BigInt a checksum takes twenty times as long. */
const polynomial = { low: 0xac4bc9b5, high: 0x95ac9329 };
const table = makeTable();

/** Returns what RESTORE takes: the value of a snapshot, the number of its format, and a checksum of both. */
export function dumpPayload(value: Buffer, format: number): Buffer {
  const payload = Buffer.alloc(value.length + 10);
  value.copy(payload);
  payload.writeUInt16LE(format, value.length);
  const { low, high } = checksum(payload.subarray(0, value.length + 2));
  payload.writeUInt32LE(low, value.length + 2);
  payload.writeUInt32LE(high, value.length + 6);
  return payload;
}

function checksum(bytes: Uint8Array): { low: number; high: number } {
  let [low, high] = [0, 0];
  for (const byte of bytes) {
    const index = (low ^ byte) & 0xff;
    low = ((low >>> 8) | (high << 24)) ^ table.low[index]!;
    high = (high >>> 8) ^ table.high[index]!;
  }
  return { low: low >>> 0, high: high >>> 0 };
}

function makeTable(): { low: Uint32Array; high: Uint32Array } {
  const [lows, highs] = [new Uint32Array(256), new Uint32Array(256)];
  for (let index = 0; index < 256; index++) {
    let [low, high] = [index, 0];
    for (let bit = 0; bit < 8; bit++) {
      const isOdd = (low & 1) === 1;
      low = (low >>> 1) | ((high & 1) << 31);
      high >>>= 1;
      if (isOdd) {
        low ^= polynomial.low;
        high ^= polynomial.high;
      }
    }
    lows[index] = low >>> 0;
    highs[index] = high >>> 0;
  }
  return { low: lows, high: highs };
}
