import { randomBytes } from 'node:crypto';
import {
  makePersonSecret,
  type PersonRole,
  type PersonSecret,
  personIdOf,
  readPersonSecret,
} from '../../src/model/person.ts';
import { createKey } from '../../src/store/accounts/create-key.ts';
import { expiryMember, tellExpiry } from '../../src/store/accounts/key-expiry.ts';
import { rotateKey } from '../../src/store/accounts/rotate-key.ts';
import { setPassword } from '../../src/store/people/change-session.ts';
import { invitePerson } from '../../src/store/people/invite-person.ts';
import { mailSignInLink } from '../../src/store/people/mail-sign-in-link.ts';
import { openSession } from '../../src/store/people/open-session.ts';
import { addPasskey, removePasskey } from '../../src/store/people/passkeys.ts';
import { removePerson } from '../../src/store/people/remove-person.ts';
import type { Scenario, Step } from './job-scenarios.ts';
import { anAccount, type TestStore } from './record.ts';

const email = 'ada@example.com';
const bob = 'bob@example.com';

/** A fresh secret of a person, as text and as what the record keeps of it. */
export function aSecret(of: string = email): PersonSecret & { readonly text: string } {
  const text = makePersonSecret(personIdOf(of), randomBytes(32));
  return { ...readPersonSecret(text)!, text };
}

const invitation = (accountId: string, role: PersonRole, secret = aSecret().text) => ({
  accountId,
  email,
  role,
  secret,
  isBound: false,
});
const from = { oldHash: '', ip: '192.0.2.1', agent: 'test' };

/** An account with one person, who has a sign-in link and, with `signedIn`, a session. */
function withAda(
  step: (accountId: string, link: PersonSecret, session: PersonSecret) => Step,
  signedIn = false,
): Scenario {
  return async (store) => {
    const { accountId } = await anAccount(store);
    const [link, first, session] = [aSecret(), aSecret(), aSecret()];
    await invitePerson(store, invitation(accountId, 'owner', link.text));
    if (signedIn) {
      await invitePerson(store, invitation(accountId, 'owner', first.text));
      await openSession(store, { linkHash: first.secretHash }, { session: aSecret(), ...from });
      await invitePerson(store, invitation(accountId, 'owner', first.text));
      await openSession(store, { linkHash: first.secretHash }, { session, ...from });
    }
    return { account: accountId, step: step(accountId, link, session) };
  };
}

const passkey = { id: 'passkey', name: 'laptop', key: 'key', counter: 0, transports: ['internal'] };

/** Ada with a session, a password and a passkey. */
function withPasskey(step: (accountId: string, personId: string) => Step): Scenario {
  return async (store) => {
    const { accountId } = await anAccount(store);
    const [link, session] = [aSecret(), aSecret()];
    await invitePerson(store, invitation(accountId, 'owner', link.text));
    await openSession(store, { linkHash: link.secretHash }, { session, ...from });
    await setPassword(store, { ...session, accountId }, 'hash');
    await addPasskey(store, { ...session, accountId }, passkey);
    return { account: accountId, step: step(accountId, session.personId) };
  };
}

/** Bob, an owner, was shown a link of Ada and used it: a session, a passkey, a password and another link are there. */
async function withShown(store: TestStore): Promise<string> {
  const { accountId } = await anAccount(store);
  const [used, unused, session] = [aSecret(), aSecret(), aSecret()];
  await invitePerson(store, { ...invitation(accountId, 'owner', aSecret(bob).text), email: bob });
  await invitePerson(store, invitation(accountId, 'owner'));
  const invite = (secret: string) =>
    invitePerson(store, { ...invitation(accountId, 'owner', secret), isBound: true, shownTo: [personIdOf(bob)] });
  await invite(used.text);
  await openSession(store, { linkHash: used.secretHash }, { session, ...from });
  await setPassword(store, { ...session, accountId }, 'hash');
  await addPasskey(store, { ...session, accountId }, passkey);
  await invite(unused.text);
  return accountId;
}

/** Every script about people that writes several times. */
export const peopleScenarios: Readonly<Record<string, Scenario>> = {
  'invite-person': async (store) => {
    const { accountId } = await anAccount(store);
    const secret = aSecret().text;
    return { account: accountId, step: (s) => invitePerson(s, invitation(accountId, 'owner', secret)) };
  },
  'invite-person with a mail': async (store) => {
    const { accountId } = await anAccount(store);
    const invited = { ...invitation(accountId, 'owner'), mailed: { sealed: 'sealed', by: 'bob@example.com' } };
    return { account: accountId, step: (s) => invitePerson(s, invited) };
  },
  'mail-sign-in-link': withAda((accountId) => {
    const wanted = { email, accountId, secret: aSecret().text, sealed: 'sealed' };
    return (s) => mailSignInLink(s, wanted);
  }),
  'invite-person with another role': withAda((accountId, _link, session) => async (s) => {
    await invitePerson(s, invitation(accountId, 'viewer', makePersonSecret(session.personId, Buffer.alloc(32, 1))));
  }),
  'remove-person': async (store) => {
    const [one, other] = [await anAccount(store), await anAccount(store)];
    for (const { accountId } of [one, other]) await invitePerson(store, invitation(accountId, 'owner'));
    return { account: one.accountId, step: (s) => removePerson(s, one.accountId, email) };
  },
  'remove-person with what opens the account alone': async (store) => {
    const [one, other] = [await anAccount(store), await anAccount(store)];
    const [link, unbound, session] = [aSecret(), aSecret(), aSecret()];
    await invitePerson(store, invitation(other.accountId, 'owner'));
    for (const secret of [link, aSecret()]) {
      await invitePerson(store, { ...invitation(one.accountId, 'owner', secret.text), isBound: true });
    }
    await openSession(store, { linkHash: link.secretHash }, { session, ...from });
    await addPasskey(store, { ...session, accountId: one.accountId }, passkey);
    await setPassword(store, { ...session, accountId: one.accountId }, 'hash');
    await invitePerson(store, invitation(one.accountId, 'owner', unbound.text));
    await openSession(store, { linkHash: unbound.secretHash }, { session: aSecret(), ...from });
    return { account: one.accountId, step: (s) => removePerson(s, one.accountId, email) };
  },
  'remove-person with what they were shown': async (store) => {
    const accountId = await withShown(store);
    return { account: accountId, step: (s) => removePerson(s, accountId, bob) };
  },
  'invite-person with what they were shown as an owner': async (store) => {
    const accountId = await withShown(store);
    const invited = { ...invitation(accountId, 'viewer', aSecret(bob).text), email: bob };
    return { account: accountId, step: async (s) => void (await invitePerson(s, invited)) };
  },
  'remove-person with the last role': withAda((accountId) => (s) => removePerson(s, accountId, email), true),
  'open-session': withAda((_account, link) => {
    const session = aSecret();
    return (s) => openSession(s, { linkHash: link.secretHash }, { session, ...from });
  }, true),
  'open-session by an identity': withAda((accountId) => {
    const session = aSecret();
    const proof = { identity: 'https://id.example.com ada', accountId, email };
    return (s) => openSession(s, proof, { session, ...from });
  }),
  'open-session by a passkey': withPasskey((accountId) => {
    const proof = { passkeyId: passkey.id, challengedAt: 1, counter: 1 };
    const session = aSecret();
    return (s) => openSession(s, { ...proof, accountId }, { session, ...from });
  }),
  'add-passkey': withAda((accountId, _link, session) => (s) => addPasskey(s, { ...session, accountId }, passkey), true),
  'remove-passkey': withPasskey(
    (accountId, personId) => (s) => removePasskey(s, { personId, passkeyId: passkey.id, scope: '', accountId }, false),
  ),
  'remove-person with a passkey': withPasskey((accountId) => (s) => removePerson(s, accountId, email)),
  'set-password': withAda(
    (accountId, _link, session) => (s) => setPassword(s, { ...session, accountId }, 'hash'),
    true,
  ),
  'set-password in a session of a link, with a passkey of before': async (store) => {
    const { accountId } = await anAccount(store);
    const [link, lost, before, session] = [aSecret(), aSecret(), aSecret(), aSecret()];
    await invitePerson(store, invitation(accountId, 'owner', link.text));
    await openSession(store, { linkHash: link.secretHash }, { session: before, ...from });
    await addPasskey(store, { ...before, accountId }, passkey);
    await invitePerson(store, invitation(accountId, 'owner', lost.text));
    await openSession(store, { linkHash: lost.secretHash }, { session, ...from });
    return { account: accountId, step: (s) => setPassword(s, { ...session, accountId }, 'hash') };
  },
  'tell-expiry': async (store) => {
    const { accountId } = await anAccount(store);
    const expires = store.clock.now() + 8 * 86_400_000;
    await createKey(store, accountId, { id: 'id', alias: 'ends', hash: 'c'.repeat(64), expires });
    store.advance(2 * 86_400_000);
    return { account: accountId, step: (s) => tellExpiry(s, expiryMember(accountId, 'c'.repeat(64))) };
  },
  'rotate-key': async (store) => {
    const caller = await anAccount(store);
    const made = { id: 'new', hash: 'b'.repeat(64), oldAlias: 'old', overlapMs: 60_000 };
    const alias = await store.connection.read(['HGET', `{trawl}:key:${caller.hash}`, 'alias']);
    return { account: caller.accountId, step: (s) => rotateKey(s, caller.accountId, alias!, made) };
  },
};
