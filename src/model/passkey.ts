import type { ReadInput } from './operator-input.ts';
import { readLiteral, topLabel } from './public-address.ts';

/** Passkey of a person as the record keeps it. Times are milliseconds. */
export interface Passkey {
  readonly id: string;
  readonly name: string;
  /** Public key, in base64url. */
  readonly key: string;
  /** Number of signatures that its authenticator has told; 0 from one that does not count. */
  readonly counter: number;
  /** Ways in which browsers reach its authenticator, with blanks between. */
  readonly transports: string;
  /** Account that it opens alone, when it was made in a bound session; else ''. */
  readonly account: string;
  readonly at: number;
  /** Last sign-in with it; 0 before the first. */
  readonly used_at: number;
}

const maxNameLength = 60;

export function readPasskeyName(text: unknown): ReadInput<string> {
  const name = typeof text === 'string' ? text.trim() : '';
  if (name !== '' && [...name].length <= maxNameLength && !/\p{C}/u.test(name)) return { value: name };
  return { problem: `The name of a passkey has 1 to ${maxNameLength} characters` };
}

/** Returns the name under which browsers keep passkeys for this URL; `null` where they keep none: an address, or http. */
export function relyingParty(dashboardUrl: string): string | null {
  const { protocol, hostname } = new URL(dashboardUrl);
  const isSecure = protocol === 'https:' || topLabel(hostname) === 'localhost';
  return isSecure && readLiteral(hostname) === null ? hostname : null;
}
