import { refuse } from '../base/errors.ts';

/** Returns a function that does one piece of work of an account at a time in this process, and refuses another one meanwhile with `sentence`. */
export function oneAtATime(sentence: string): <T>(accountId: string, work: () => Promise<T>) => Promise<T> {
  const inHand = new Set<string>();
  return async (accountId, work) => {
    if (inHand.has(accountId)) throw refuse('rate_limited', sentence);
    inHand.add(accountId);
    try {
      return await work();
    } finally {
      inHand.delete(accountId);
    }
  };
}
