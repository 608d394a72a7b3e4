import { randomBytes } from 'node:crypto';
import {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server';
import type { Seal } from '../base/seal.ts';
import type { Passkey } from '../model/passkey.ts';

export interface PasskeySite {
  readonly seal: Seal;
  /** Name under which browsers keep them. */
  readonly rpID: string;
  readonly origin: string;
  readonly now: () => number;
}

interface Newcomer {
  readonly personId: string;
  /** Account of a bound session, else ''. */
  readonly scope: string;
  readonly email: string;
  /** Passkeys of the same scope. */
  readonly known: readonly Passkey[];
  /** Text that stands for the session which asks: a challenge of one session is worth nothing in another. */
  readonly session: string;
}

const purpose = 'passkey';
const challengeMs = 5 * 60_000;
/** EdDSA, ES256, RS256: every authenticator knows one of them. */
const supportedAlgorithmIDs = [-8, -7, -257];

/** Returns what a browser is told to make a passkey. */
export function creationOptions(site: PasskeySite, { personId, scope, email, known, session }: Newcomer) {
  return generateRegistrationOptions({
    rpName: 'trawl',
    rpID: site.rpID,
    userName: email,
    userDisplayName: email,
    // An authenticator keeps one passkey for each of these: one that opens less does not replace one that opens more.
    userID: new Uint8Array(Buffer.from(site.seal.sign('passkey user', `${personId} ${scope}`), 'base64url')),
    challenge: makeChallenge(site, `create ${session}`),
    excludeCredentials: known.map(({ id, transports }) => ({ id, transports: transportsOf(transports) })),
    supportedAlgorithmIDs,
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  });
}

/** Returns the passkey that a browser has made; `null` for anything else. */
export async function readCreated(site: PasskeySite, session: string, response: unknown) {
  const verified = await verifyRegistrationResponse({
    response: response as Parameters<typeof verifyRegistrationResponse>[0]['response'],
    expectedChallenge: (challenge) => readChallenge(site, `create ${session}`, challenge) !== null,
    expectedOrigin: site.origin,
    expectedRPID: site.rpID,
    requireUserVerification: true,
    supportedAlgorithmIDs,
  }).catch(() => null);
  if (!verified?.verified) return null;
  const { id, publicKey, counter, transports = [] } = verified.registrationInfo.credential;
  return { id, key: Buffer.from(publicKey).toString('base64url'), counter, transports };
}

/** Returns what a browser is told to sign in with any passkey that it has for this site. */
export function signInOptions(site: PasskeySite) {
  return generateAuthenticationOptions({
    rpID: site.rpID,
    challenge: makeChallenge(site, 'sign in'),
    userVerification: 'required',
  });
}

/** Returns the time of the challenge that a passkey has signed, and its new counter; `null` for anything else. */
export async function readSigned(site: PasskeySite, { id, key, counter, transports }: Passkey, response: unknown) {
  let challengedAt = 0;
  const verified = await verifyAuthenticationResponse({
    response: response as Parameters<typeof verifyAuthenticationResponse>[0]['response'],
    expectedChallenge: (challenge) => {
      challengedAt = readChallenge(site, 'sign in', challenge) ?? 0;
      return challengedAt > 0;
    },
    expectedOrigin: site.origin,
    expectedRPID: site.rpID,
    credential: {
      id,
      publicKey: new Uint8Array(Buffer.from(key, 'base64url')),
      counter,
      transports: transportsOf(transports),
    },
    requireUserVerification: true,
  }).catch(() => null);
  return verified?.verified ? { challengedAt, counter: verified.authenticationInfo.newCounter } : null;
}

function transportsOf(text: string): string[] {
  return text.split(' ').filter(Boolean);
}

/** A challenge tells its own time under our signature, so nothing is kept of those that nobody answers. */
function makeChallenge({ seal, now }: PasskeySite, use: string): string {
  const text = `${now()}.${randomBytes(16).toString('base64url')}`;
  return `${text}.${seal.sign(purpose, `${use} ${text}`)}`;
}

/** Returns the time of a challenge, as the browser gives it back; `null` for one that is not ours, too old, or for another use. */
function readChallenge({ seal, now }: PasskeySite, use: string, challenge: string): number | null {
  const [at = '', nonce = '', signature = ''] = Buffer.from(challenge, 'base64url').toString().split('.');
  if (!seal.verify(purpose, `${use} ${at}.${nonce}`, signature)) return null;
  return now() - Number(at) <= challengeMs ? Number(at) : null;
}
