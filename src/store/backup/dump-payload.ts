import { crc64 } from './crc64.ts';

/** Returns what RESTORE takes: the value of a snapshot, the number of its format, and a checksum of both. */
export function dumpPayload(value: Buffer, format: number): Buffer {
  const payload = Buffer.alloc(value.length + 10);
  value.copy(payload);
  payload.writeUInt16LE(format, value.length);
  const { low, high } = crc64(payload.subarray(0, value.length + 2));
  payload.writeUInt32LE(low, value.length + 2);
  payload.writeUInt32LE(high, value.length + 6);
  return payload;
}
