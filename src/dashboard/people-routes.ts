import { randomBytes } from 'node:crypto';
import type { ApiReply } from '../api/reply.ts';
import type { Seal } from '../base/seal.ts';
import { mailedLinkPurpose, makePersonSecret, personIdOf, readEmail, readRole, signInUrl } from '../model/person.ts';
import { type RevocationObjects, revoke } from '../objects/revocations.ts';
import { invitePerson } from '../store/people/invite-person.ts';
import { listPeople } from '../store/people/read-people.ts';
import { removePerson } from '../store/people/remove-person.ts';
import { changeRoute, type DashboardCall, type DashboardRoute, readRoute } from './dashboard-app.ts';
import { requireRead } from './given-values.ts';
import type { SignedIn } from './session-cookies.ts';

/** Routes about the people of an account; `seal` keeps the links that are mailed, and is `null` where there is no mail server. */
export function peopleRoutes(
  objects: RevocationObjects,
  dashboardUrl: () => string,
  seal: Seal | null,
): DashboardRoute[] {
  return [
    readRoute('/api/people', async ({ store, accountId }) => {
      const people = accountId === '' ? [] : await listPeople(store, accountId);
      // Nothing more: whether they have a password, and since when they are known, tells of other accounts.
      const shown = people.map(({ email, role }) => ({ email, role }));
      return { status: 200, body: { people: shown } };
    }),
    changeRoute('POST', '/api/people', 'people', (call) => invite(dashboardUrl(), seal, call)),
    changeRoute('DELETE', '/api/people/:email', 'people', async ({ req, store, accountId, signedIn }) => {
      const email = requireRead(readEmail(req.params.email));
      const revocation = { kind: 'person', account: accountId, email } as const;
      const work = () => removePerson(store, accountId, email, lossIn(signedIn));
      await revoke(async () => objects, store.clock.now(), revocation, work);
      return { status: 200, body: { removed: email } };
    }),
  ];
}

/** Limits of taking a role in a session. */
function lossIn({ session }: SignedIn) {
  return { keepsOwner: true, keptSession: session.secretHash };
}

async function invite(dashboardUrl: string, seal: Seal | null, call: DashboardCall): Promise<ApiReply> {
  const { store, accountId, given, signedIn } = call;
  const email = requireRead(readEmail(given.email));
  const role = requireRead(readRole(given.role));
  const secret = makePersonSecret(personIdOf(email), randomBytes(32));
  const mail = seal && { sealed: seal.seal(mailedLinkPurpose, secret), by: signedIn.person.email };
  // In a session by a link that was shown to others, they may be the ones who see this link.
  const shownTo = [...new Set([signedIn.person.id, ...(signedIn.session.shown_to?.split(' ') ?? [])])];
  const wanted = { accountId, email, role, secret, isBound: true, shownTo, ...lossIn(signedIn), mailed: mail };
  const mailed = await invitePerson(store, wanted);
  const body = { email, role, sign_in_url: signInUrl(dashboardUrl, secret), mailed };
  return { status: 201, body };
}
