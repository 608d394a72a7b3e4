import { hash, randomBytes } from 'node:crypto';
import { refuse } from '../base/errors.ts';
import { readEmail, roles } from '../model/person.ts';
import { findAccount } from '../store/accounts/read-accounts.ts';
import { addPerson } from '../store/people/add-person.ts';
import { listPeople } from '../store/people/read-people.ts';
import { removePerson } from '../store/people/remove-person.ts';
import { command } from './command.ts';
import { oneOf, slug } from './command-values.ts';
import { fieldText, listResult } from './text-table.ts';

/** Lifetime of a sign-in link. */
const linkMs = 72 * 3_600_000;

const aRole = oneOf(...roles);

export const userCommands = [
  command({
    group: 'user',
    verb: 'create',
    text: 'Gives a person a role in an account, and a sign-in link to the dashboard that works once, within 72 hours.',
    json: '{email, role, sign_in_url}',
    operands: { SLUG: slug },
    options: {
      email: { value: 'E', read: readEmail, text: 'E-mail address of the person.', required: true },
      role: {
        value: roles.join('|'),
        read: aRole,
        text: 'An owner may do all and gets mails about money, a member has keys, jobs and webhooks, a viewer reads.',
        required: true,
      },
    },
    run: async (given, { store, config }) => {
      const { SLUG, email, role } = given;
      const token = randomBytes(32).toString('base64url');
      const link = { tokenHash: hash('sha256', token), lifeMs: linkMs };
      await addPerson(store, await findAccount(store, SLUG), { email, role }, link);
      const person = { email, role, sign_in_url: `${config.dashboardUrl}/sign-in#${token}` };
      return { value: person, text: fieldText(person) };
    },
  }),
  command({
    group: 'user',
    verb: 'list',
    text: 'Lists the people of an account.',
    json: '[{email, role}]',
    operands: { SLUG: slug },
    run: async (given, { store }) => {
      const people = await listPeople(store, await findAccount(store, given.SLUG));
      return listResult(
        people,
        (person) => person,
        (person) => ({ ...person }),
        'The account has no people.',
      );
    },
  }),
  command({
    group: 'user',
    verb: 'remove',
    text: 'Takes the role of a person in an account away.',
    json: '{removed}',
    operands: { SLUG: slug, EMAIL: { read: readEmail, text: 'E-mail address of the person.' } },
    run: async (given, { store }) => {
      const { SLUG, EMAIL } = given;
      const isRemoved = await removePerson(store, await findAccount(store, SLUG), EMAIL);
      if (!isRemoved) throw refuse('not_found', `${EMAIL} has no role in the account ${SLUG}`);
      return { value: { removed: EMAIL }, text: `${EMAIL} has no role in the account ${SLUG} any more.\n` };
    },
  }),
];
