import { hash } from 'node:crypto';
import type { ReadInput } from './operator-input.ts';

/** Roles of a person in one account (D87). */
export const personRoles = ['owner', 'member', 'viewer'] as const;
export type PersonRole = (typeof personRoles)[number];
/** Operators see every account and change nothing. */
export type SessionRole = PersonRole | 'operator';

/** Subject that a person may change; everybody reads all of them. */
export type Changeable = 'keys' | 'jobs' | 'webhooks' | 'money' | 'people';

const changeable: Readonly<Record<SessionRole, readonly Changeable[]>> = {
  owner: ['keys', 'jobs', 'webhooks', 'money', 'people'],
  member: ['keys', 'jobs', 'webhooks'],
  viewer: [],
  operator: [],
};

export function mayChange(role: SessionRole, subject: Changeable): boolean {
  return changeable[role].includes(subject);
}

/** A person as the record keeps them. Times are milliseconds. */
export interface Person {
  readonly id: string;
  readonly email: string;
  /** Hash of the password; '' without one. */
  readonly password: string;
  readonly isOperator: boolean;
  /** They have signed in with OpenID Connect. */
  readonly hasIdentity: boolean;
  /** Account id → role there. */
  readonly roles: Readonly<Record<string, PersonRole>>;
  readonly created_at: number;
}

/** Returns the role of a person in an account; `null` when it is not theirs to see. */
export function roleIn(person: Pick<Person, 'isOperator' | 'roles'>, accountId: string): SessionRole | null {
  const own = Object.hasOwn(person.roles, accountId) ? person.roles[accountId] : undefined;
  return own ?? (person.isOperator ? 'operator' : null);
}

/** Returns the account that a session of the person opens with: the one that a page shows, if it is theirs, else their first one. */
export function accountToOpen({ roles }: Pick<Person, 'roles'>, shown = ''): string {
  return Object.hasOwn(roles, shown) ? shown : (Object.keys(roles).sort()[0] ?? '');
}

const maxEmailLength = 254;
const passwordLength = { min: 8, max: 256 };
const secretForm = /^([\w-]{22})\.([\w-]{43})$/;

/** An e-mail address, in lower case: two spellings are one person. */
export function readEmail(text: unknown): ReadInput<string> {
  const given = typeof text === 'string' ? text.trim() : '';
  const email = given.toLowerCase();
  const isAddress = /^[^\s@<>,;:"()[\]\\\p{C}]{1,64}@[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/u.test(email);
  // In lower case the Kelvin sign is the k in the address of another person.
  const isOther = given.includes('\u212a');
  if (isAddress && !isOther && email.length <= maxEmailLength && !email.includes('..')) return { value: email };
  return { problem: 'An e-mail address looks like name@example.com and has at most 254 characters' };
}

export function readRole(text: unknown): ReadInput<PersonRole> {
  const role = personRoles.find((one) => one === text);
  return role === undefined ? { problem: `A role is one of ${personRoles.join(', ')}` } : { value: role };
}

export function readPassword(text: unknown): ReadInput<string> {
  const { min, max } = passwordLength;
  if (typeof text === 'string' && text.length >= min && text.length <= max) return { value: text };
  return { problem: `A password has ${min} to ${max} characters` };
}

/** Returns the id of the person with this e-mail address, which names their keys in the record. */
export function personIdOf(email: string): string {
  return hash('sha256', `person ${email}`, 'buffer').subarray(0, 16).toString('base64url');
}

/**
 * Returns the name of a person at the configured issuer, which stands first. One that answers for many directories, as Microsoft's does for
 * all tenants, names in `iss` the one that vouches: anybody may have one, so that it is no issuer which the operator has configured.
 */
export function identityOf(issuer: string, { iss, sub }: { readonly iss: string; readonly sub: string }): string {
  return (iss === issuer ? [issuer, sub] : [issuer, iss, sub]).join(' ');
}

/** The secret of a sign-in link or a session: the id of its person, and what the record keeps a hash of. */
export interface PersonSecret {
  readonly personId: string;
  readonly secretHash: string;
}

/** Returns the text of a secret that these 32 bytes make. */
export function makePersonSecret(personId: string, bytes: Uint8Array): string {
  return `${personId}.${Buffer.from(bytes).toString('base64url')}`;
}

export function readPersonSecret(text: unknown): PersonSecret | null {
  const [, personId, secret] = (typeof text === 'string' && secretForm.exec(text)) || [];
  if (personId === undefined || secret === undefined) return null;
  return { personId, secretHash: hash('sha256', secret, 'base64url') };
}

/** Returns a sign-in link. Its secret stands behind `#`: a browser sends nothing of it before the button of the page is used. */
export function signInUrl(dashboardUrl: string, secret: string): string {
  return `${dashboardUrl}/sign-in#${secret}`;
}

/** Time for which a sign-in link works: that of an invitation, and one that somebody asked for with an e-mail address alone. */
export const signInLinkMs = { invitation: 72 * 3_600_000, link: 3_600_000 } as const;

/** Purpose for which the secrets of sign-in links are sealed while their mails wait. */
export const mailedLinkPurpose = 'mailed link';
