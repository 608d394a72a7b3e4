import { createHash } from 'node:crypto';

/** Numbers from 0 up to 1 that follow from a seed alone. */
export function makeRandom(seed: string | number): () => number {
  let count = 0;
  return () => createHash('sha256').update(`${seed} ${count++}`).digest().readUInt32LE() / 2 ** 32;
}
