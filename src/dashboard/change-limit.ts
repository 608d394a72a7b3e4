import { refuse } from '../base/errors.ts';
import { countInWindows } from '../base/window-count.ts';

/** Counts a change of a person; throws `rate_limited` when there were too many. */
export type ChangeLimit = (personId: string) => void;

const windowMs = 86_400_000;
const maxChanges = 500;
const sentence = `You made ${maxChanges} changes today, which is the limit: try again tomorrow`;

/** Counts the changes of each person in the memory of this process: 500 a day, so that no one fills the audit log of an account. */
export function limitChanges(): ChangeLimit {
  const countPerson = countInWindows(windowMs);
  return (personId) => {
    if (countPerson(personId).count > maxChanges) throw refuse('rate_limited', sentence, windowMs / 1000);
  };
}
