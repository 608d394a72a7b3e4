import type { Request } from 'express';
import type { ApiReply } from '../api/reply.ts';
import { refuse } from '../base/errors.ts';
import type { Seal } from '../base/seal.ts';
import { readPasskeyName, relyingParty } from '../model/passkey.ts';
import { recordLimits } from '../model/record-limits.ts';
import { writeTime } from '../model/timestamp.ts';
import {
  addPasskey,
  findPasskey,
  listPasskeys,
  namePasskey,
  removePasskey,
  tooManyPasskeys,
} from '../store/people/passkeys.ts';
import type { RecordStore } from '../store/script.ts';
import {
  changeRoute,
  type DashboardCall,
  type DashboardRoute,
  type OpenRoute,
  openRoute,
  readRoute,
} from './dashboard-app.ts';
import { readGiven, requireRead } from './given-values.ts';
import type { PasskeySite } from './passkey-ceremony.ts';
import type { SignedIn } from './session-cookies.ts';

export interface PasskeyParts {
  readonly store: RecordStore;
  readonly seal: Seal;
  readonly dashboardUrl: () => string;
  /** People may sign in with OpenID Connect. */
  readonly hasOpenid: boolean;
}

const notHere = 'Passkeys need a dashboard that is reached by a name over https, or at localhost';
const idForm = /^[\w-]{1,1400}$/;

/** Routes that make, name and remove the passkeys of a person, and the one that begins a sign-in with any of them. */
export function passkeyRoutes(parts: PasskeyParts): { open: OpenRoute[]; signedIn: DashboardRoute[] } {
  const { store } = parts;
  return {
    open: [openRoute('POST', '/api/sign-in/passkey', () => beginSignIn(parts))],
    signedIn: [
      readRoute('/api/passkeys', (call) => showPasskeys(parts, call)),
      changeRoute('POST', '/api/passkeys/begin', 'own', (call) => beginPasskey(parts, call)),
      changeRoute('POST', '/api/passkeys', 'own', (call) => addMade(parts, call)),
      changeRoute('PATCH', '/api/passkeys/:id', 'own', async ({ req, signedIn, given }) => {
        const name = requireRead(readPasskeyName(given.name));
        if (!(await namePasskey(store, passkeyOf(signedIn, req), name)))
          throw refuse('not_found', 'There is no such passkey');
        return { status: 200, body: { name } };
      }),
      changeRoute('DELETE', '/api/passkeys/:id', 'own', async ({ req, store, signedIn, accountId }) => {
        await removePasskey(store, { ...passkeyOf(signedIn, req), accountId }, parts.hasOpenid);
        return { status: 200, body: { removed: true } };
      }),
    ],
  };
}

/** Verifies what a passkey has signed; returns its person, or `null` when it signs nobody in. */
export async function readPasskeySignIn(parts: PasskeyParts, response: unknown) {
  const { id } = (response ?? {}) as { readonly id?: unknown };
  const found = typeof id === 'string' && idForm.test(id) ? await findPasskey(parts.store, id) : null;
  if (found === null) return null;
  const { readSigned } = await import('./passkey-ceremony.ts');
  const signed = await readSigned(siteOf(parts), found.passkey, response);
  return signed && { personId: found.personId, passkeyId: found.passkey.id, ...signed };
}

async function beginSignIn(parts: PasskeyParts): Promise<ApiReply> {
  const site = siteOf(parts);
  const { signInOptions } = await import('./passkey-ceremony.ts');
  return { status: 200, body: { ...(await signInOptions(site)) } };
}

async function showPasskeys({ store, dashboardUrl }: PasskeyParts, { signedIn }: DashboardCall): Promise<ApiReply> {
  const known = await listPasskeys(store, signedIn.person.id, scopeOf(signedIn));
  const passkeys = known.map(({ id, name, at, used_at }) => {
    return { id, name, created_at: writeTime(at), last_used_at: writeTime(used_at || null) };
  });
  return { status: 200, body: { passkeys, possible: relyingParty(dashboardUrl()) !== null } };
}

/** Refuses before a device makes a passkey what would be refused after. */
async function beginPasskey(parts: PasskeyParts, { signedIn, given }: DashboardCall): Promise<ApiReply> {
  const site = siteOf(parts);
  readGiven(given, 'name', readPasskeyName);
  const { id: personId, email } = signedIn.person;
  const scope = scopeOf(signedIn);
  const known = await listPasskeys(parts.store, personId, scope);
  if (known.filter(({ account }) => account === scope).length >= recordLimits.passkeysOfPerson) throw tooManyPasskeys();
  const { creationOptions } = await import('./passkey-ceremony.ts');
  const session = signedIn.session.secretHash;
  return { status: 200, body: { ...(await creationOptions(site, { personId, scope, email, known, session })) } };
}

async function addMade(parts: PasskeyParts, { store, signedIn, accountId, given }: DashboardCall): Promise<ApiReply> {
  const name = requireRead(readPasskeyName(given.name));
  const { readCreated } = await import('./passkey-ceremony.ts');
  const { secretHash } = signedIn.session;
  const made = await readCreated(siteOf(parts), secretHash, given.response);
  if (made === null) throw refuse('bad_request', 'Bad Request: this is no passkey that was just made here: try again');
  await addPasskey(store, { personId: signedIn.person.id, secretHash, accountId }, { ...made, name });
  return { status: 201, body: { id: made.id, name } };
}

function siteOf({ store, seal, dashboardUrl }: PasskeyParts): PasskeySite {
  const url = dashboardUrl();
  const rpID = relyingParty(url);
  if (rpID === null) throw refuse('not_found', notHere);
  return { seal, rpID, origin: new URL(url).origin, now: store.clock.now };
}

function passkeyOf(signedIn: SignedIn, req: Request) {
  return { personId: signedIn.person.id, passkeyId: String(req.params.id), scope: scopeOf(signedIn) };
}

/** A bound session sees only the passkeys that open its account alone. */
export function scopeOf({ session }: SignedIn): string {
  return session.bound ? session.account : '';
}
