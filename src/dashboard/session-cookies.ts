import { randomBytes } from 'node:crypto';
import type { Request } from 'express';
import type { Seal } from '../base/seal.ts';
import { makePersonSecret, type Person, readPersonSecret, roleIn } from '../model/person.ts';
import { openSession, sessionMs } from '../store/people/open-session.ts';
import { readSession } from '../store/people/read-people.ts';
import type { RecordStore } from '../store/script.ts';

const purpose = 'csrf';

/** Cookies that carry sessions. The record keeps a hash of each, so reading the record opens nothing. */
export type SessionCookies = ReturnType<typeof makeSessionCookies>;

/** A person at a browser. */
export type SignedIn = NonNullable<Awaited<ReturnType<SessionCookies['read']>>>;

/** `isSecure`: owners reach the dashboard over https. */
export function makeSessionCookies(store: RecordStore, seal: Seal, isSecure: () => boolean) {
  const nameOf = () => (isSecure() ? '__Host-trawl' : 'trawl');
  const secretOf = (req: Request) => readPersonSecret(readCookie(req.get('cookie'), nameOf()));
  return {
    /** Returns who sends a request; `null` without a session that has not ended. */
    async read(req: Request) {
      const secret = secretOf(req);
      const found = secret === null ? null : await readSession(store, secret);
      if (found === null || secret === null) return null;
      const { session } = found;
      const person = session.bound ? boundTo(found.person, session.account) : found.person;
      const role = session.account === '' ? null : roleIn(person, session.account);
      // A person who was removed from the account sees nothing more of it, unless another account is theirs.
      if (role === null && !person.isOperator) return null;
      const text = `${secret.personId}.${secret.secretHash}`;
      return {
        person,
        session,
        /** Role in the account that the session shows; `null` while it shows none. */
        role,
        /** Token that every request which changes something carries in `x-csrf-token`. */
        csrf: seal.sign(purpose, text),
        isCsrfToken: (token = '') => seal.verify(purpose, text, token),
      };
    },
    /**
     * Opens a session of a person by what they have just shown, in place of the one that the browser had; returns its Set-Cookie header, or
     * `null` for a proof that opens nothing.
     */
    async open(req: Request, ip: string, personId: string, proof: Parameters<typeof openSession>[1]) {
      const text = makePersonSecret(personId, randomBytes(32));
      const old = secretOf(req);
      const oldHash = old?.personId === personId ? old.secretHash : '';
      const made = { session: readPersonSecret(text)!, oldHash, ip, agent: req.get('user-agent') ?? '' };
      return (await openSession(store, proof, made)) ? writeCookie(nameOf(), text, sessionMs / 1000) : null;
    },
    /** Set-Cookie header that removes the cookie. */
    clear: () => writeCookie(nameOf(), '', 0),
  };
}

/** Returns a person as a bound session shows them: with their role in one account, and no other right. */
function boundTo(person: Person, accountId: string): Person {
  const role = Object.hasOwn(person.roles, accountId) ? person.roles[accountId] : undefined;
  return { ...person, isOperator: false, roles: role === undefined ? {} : { [accountId]: role } };
}

/** Returns the Set-Cookie header of a cookie; a name that browsers take over https alone has its flag. */
export function writeCookie(name: string, value: string, seconds: number): string {
  const secure = name.startsWith('__Host-') ? '; Secure' : '';
  return `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`;
}

export function readCookie(cookies: string | undefined, name: string): string | undefined {
  const pair = cookies?.split(/;\s*/).find((one) => one.startsWith(`${name}=`));
  return pair?.slice(name.length + 1);
}
