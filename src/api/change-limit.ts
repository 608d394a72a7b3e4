import { MemoryStore } from 'express-rate-limit';
import { refuse } from '../base/errors.ts';

/** Counts a change of a person, or of an account; throws `rate_limited` when there were too many. */
export type ChangeLimit = (id: string) => Promise<void>;

const dayMs = 86_400_000;
const minuteMs = 60_000;
const maxChanges = 500;
const maxTests = 10;
const tooManyChanges = `You made ${maxChanges} changes today, which is the limit: try again tomorrow`;
const tooManyTests = `This account asked for ${maxTests} tests within a minute, which is the limit: try again in a minute`;

/** Counts the changes of each person in the memory of this process: 500 a day, so that no one fills the audit log of an account. */
export function limitChanges(): ChangeLimit {
  return limitTo(maxChanges, dayMs, tooManyChanges);
}

/** Counts the tests of receivers that each account asks for in the memory of this process: 10 a minute, so that no one floods a host with posts of ours. */
export function limitReceiverTests(): ChangeLimit {
  return limitTo(maxTests, minuteMs, tooManyTests);
}

function limitTo(max: number, windowMs: number, sentence: string): ChangeLimit {
  const counts = new MemoryStore();
  counts.init({ windowMs } as Parameters<MemoryStore['init']>[0]);
  return async (id) => {
    const { totalHits } = await counts.increment(id);
    if (totalHits > max) throw refuse('rate_limited', sentence, windowMs / 1000);
  };
}
