import { randomBytes } from 'node:crypto';
import type { ApiReply } from '../api/reply.ts';
import { makePersonSecret, personIdOf, readEmail, readRole, signInUrl } from '../model/person.ts';
import { invitePerson } from '../store/people/invite-person.ts';
import { listPeople } from '../store/people/read-people.ts';
import { removePerson } from '../store/people/remove-person.ts';
import type { DashboardCall, DashboardRoute } from './dashboard-app.ts';
import { requireRead } from './given-values.ts';

/** Routes about the people of an account. */
export function peopleRoutes(dashboardUrl: () => string): DashboardRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/people',
      handle: async ({ store, accountId }) => {
        const people = accountId === '' ? [] : await listPeople(store, accountId);
        // Nothing more: whether they have a password, and since when they are known, tells of other accounts.
        const shown = people.map(({ email, role }) => ({ email, role }));
        return { status: 200, body: { people: shown } };
      },
    },
    { method: 'POST', path: '/api/people', changes: 'people', handle: (call) => invite(dashboardUrl(), call) },
    {
      method: 'DELETE',
      path: '/api/people/:email',
      changes: 'people',
      handle: async ({ req, store, accountId }) => {
        const email = requireRead(readEmail(req.params.email));
        await removePerson(store, accountId, email, true);
        return { status: 200, body: { removed: email } };
      },
    },
  ];
}

async function invite(dashboardUrl: string, { store, accountId, given }: DashboardCall): Promise<ApiReply> {
  const email = requireRead(readEmail(given.email));
  const role = requireRead(readRole(given.role));
  const secret = makePersonSecret(personIdOf(email), randomBytes(32));
  await invitePerson(store, { accountId, email, role, secret, isBound: true, keepsOwner: true });
  return { status: 201, body: { email, role, sign_in_url: signInUrl(dashboardUrl, secret) } };
}
