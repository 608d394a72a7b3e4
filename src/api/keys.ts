import { type KeyText, readKey } from '../model/api-key.ts';

/** Reads the text of a key; `null` for anything else. */
export type ReadKey = (text: unknown) => KeyText | null;

const mostRemembered = 1_000;

/** Reads keys, and remembers those that have the form of one: to hash the same text for every poll is 5 % of it. */
export function rememberKeys(): ReadKey {
  const known = new Map<unknown, KeyText>();
  return (text) => {
    const present = known.get(text);
    if (present) return present;
    const key = readKey(text);
    if (key === null) return null;
    if (known.size >= mostRemembered) known.clear();
    known.set(text, key);
    return key;
  };
}
