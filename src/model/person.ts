import type { ReadInput } from './operator-input.ts';

export const roles = ['owner', 'member', 'viewer'] as const;
/** Right of a person in an account (D56, D87). */
export type PersonRole = (typeof roles)[number];

/** Reads an e-mail address, in small letters: people write their own in several ways. */
export function readEmail(value: unknown): ReadInput<string> {
  const isAddress =
    typeof value === 'string' && value.length <= 254 && /^[^\s@<>,;:"()\p{C}]+@[^\s@<>,;:"()\p{C}]+$/u.test(value);
  return isAddress ? { value: value.toLowerCase() } : { problem: 'An e-mail address must look like ada@example.com' };
}
