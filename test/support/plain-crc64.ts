import type { HalvedNumber } from '../../src/store/backup/crc64.ts';

const polynomial = 0x95ac9329ac4bc9b5n;
const table = Array.from({ length: 256 }, (_, index) => {
  let sum = BigInt(index);
  for (let bit = 0; bit < 8; bit++) sum = (sum >> 1n) ^ (sum & 1n ? polynomial : 0n);
  return sum;
});

/** Returns the CRC-64 of Redis by BigInt, the plain form of `crc64`. */
export function plainCrc64(bytes: Uint8Array): HalvedNumber {
  let sum = 0n;
  for (const byte of bytes) sum = (sum >> 8n) ^ table[Number((sum ^ BigInt(byte)) & 0xffn)]!;
  return { low: Number(sum & 0xffffffffn), high: Number(sum >> 32n) };
}
