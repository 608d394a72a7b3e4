import { randomBytes, randomUUID } from 'node:crypto';
import { deflateRawSync } from 'node:zlib';
import { keepDeflater } from '../../src/store/jobs/text-deflater.ts';
import type { Measurement } from './measurement.ts';

const rounds = 7;
const calls = 2_000;
/** About as many bytes as a job with a short description has, and about the dictionary of ended jobs. */
const text = JSON.stringify([randomUUID(), 'a film of the harbour '.repeat(10), randomBytes(200).toString('base64')]);
const options = { level: 9, windowBits: 13, memLevel: 6, dictionary: randomBytes(2_000) } as const;

/** The texts of jobs that end, deflated by one kept stream and by a stream for each. */
export function compareDeflaters(): Measurement {
  const deflate = keepDeflater(options);
  const [kept, single]: [number[], number[]] = [[], []];
  for (let round = 0; round <= rounds; round++) {
    const took = [timed(() => deflate(text)), timed(() => deflateRawSync(text, options))] as const;
    // The first round warms up.
    if (round > 0) kept.push(took[0]);
    if (round > 0) single.push(took[1]);
  }
  const [fast, plain] = [Math.min(...kept), Math.min(...single)];
  return {
    what: 'texts of an ended job with a zlib stream for each : with one kept',
    ratio: plain / fast,
    bound: { least: 1.1 },
    optimisation: 'src/store/jobs/text-deflater.ts',
    because: `${plain.toFixed(1)} µs : ${fast.toFixed(1)} µs`,
  };
}

/** Returns the processor time of one call in microseconds. */
function timed(work: () => unknown): number {
  const before = process.cpuUsage();
  for (let n = 0; n < calls; n++) work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / calls;
}
