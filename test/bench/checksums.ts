import { crc64 } from '../../src/store/backup/crc64.ts';
import { plainCrc64 } from '../support/plain-crc64.ts';
import type { Measurement } from './measurement.ts';

const rounds = 5;
const bytes = Buffer.alloc(1 << 20, 'A record that is put back. ');

/** The checksum of each value that a restore writes. */
export function compareChecksums(): Measurement {
  const [halves, whole]: [number[], number[]] = [[], []];
  for (let round = 0; round <= rounds; round++) {
    const took = [timed(() => crc64(bytes)), timed(() => plainCrc64(bytes))] as const;
    // The first round warms up.
    if (round > 0) halves.push(took[0]);
    if (round > 0) whole.push(took[1]);
  }
  const [fast, plain] = [Math.min(...halves), Math.min(...whole)];
  return {
    what: 'checksum of 1 MiB with BigInt : in halves',
    ratio: plain / fast,
    bound: { least: 1.1 },
    optimisation: 'src/store/backup/crc64.ts',
    because: `${plain.toFixed(0)} µs : ${fast.toFixed(0)} µs`,
  };
}

/** Returns the processor time in microseconds. */
function timed(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
