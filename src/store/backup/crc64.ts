// Gain: 8 times the speed of the same sum as one number of 64 bits, which takes BigInt (`make bench BENCH=record` has its row).

/** A number of 64 bits in two halves. */
export interface HalvedNumber {
  readonly low: number;
  readonly high: number;
}

const polynomial: HalvedNumber = { low: 0xac4bc9b5, high: 0x95ac9329 };
const table = makeTable();

/** Returns the CRC-64 of Redis ("Jones", reflected). */
export function crc64(bytes: Uint8Array): HalvedNumber {
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
