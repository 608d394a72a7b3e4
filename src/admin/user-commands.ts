import { randomBytes } from 'node:crypto';
import { UsageError } from '../base/command-line.ts';
import { makePersonSecret, personIdOf, readEmail, readRole, signInUrl } from '../model/person.ts';
import { writeTime } from '../model/timestamp.ts';
import { revoke } from '../objects/revocations.ts';
import { findAccount } from '../store/accounts/read-accounts.ts';
import { invitePerson } from '../store/people/invite-person.ts';
import { listPeople } from '../store/people/read-people.ts';
import { removePerson } from '../store/people/remove-person.ts';
import { command } from './command.ts';
import { flag, slug } from './command-values.ts';
import { fieldText, listResult, timeText } from './text-table.ts';

const email = { value: 'E', read: readEmail, text: 'E-mail address of the person.', required: true } as const;
const slugOrNone = { ...slug, optional: true } as const;

export const userCommands = {
  'user create': command({
    text: 'Gives a person a role in an account, or makes an operator, and shows a link that signs in once within 72 hours.',
    json: '{email, role, sign_in_url}',
    operands: { SLUG: slugOrNone },
    options: {
      email,
      role: {
        value: 'owner|member|viewer',
        read: readRole,
        text: 'What the person may do: everything; keys, jobs and webhooks; or read.',
      },
      operator: { read: flag, text: 'Makes an operator, who reads every account and changes none, instead of a role.' },
    },
    run: async ({ SLUG, email: address, role, operator }, { store, config }) => {
      if ((operator ?? false) === (SLUG !== undefined)) throw new UsageError('Name an account, or --operator');
      if (SLUG !== undefined && role === undefined) throw new UsageError('--role is needed: owner, member or viewer');
      if (operator && role !== undefined) throw new UsageError('An operator has no role in an account');
      const accountId = SLUG === undefined ? '' : await findAccount(store, SLUG);
      const secret = makePersonSecret(personIdOf(address), randomBytes(32));
      const given = role ?? 'operator';
      await invitePerson(store, { accountId, email: address, role: given, secret, isBound: false });
      const value = { email: address, role: given, sign_in_url: signInUrl(config.dashboardUrl, secret) };
      return {
        value,
        text: `${fieldText(value)}The link works once, within 72 hours; another one ends none of its sessions.\n`,
      };
    },
  }),
  'user list': command({
    text: 'Lists the people of an account, or the operators.',
    json: '[{email, role, created_at}]',
    operands: { SLUG: slugOrNone },
    run: async ({ SLUG }, { store }) => {
      const people = await listPeople(store, SLUG === undefined ? '' : await findAccount(store, SLUG));
      return listResult(
        people,
        ({ email, role, created_at }) => ({ email, role, created_at: writeTime(created_at) }),
        ({ email, role, created_at, hasPassword }) => {
          return { email, role, password: hasPassword ? 'set' : 'none', 'created (UTC)': timeText(created_at) };
        },
        'There is nobody.',
      );
    },
  }),
  'user remove': command({
    text: 'Takes the role of a person in an account, or makes an operator none; with the last role their sessions end.',
    json: '{removed}',
    operands: { SLUG: slugOrNone, EMAIL: { read: readEmail, text: 'E-mail address of the person.', optional: true } },
    options: {
      operator: { value: 'E', read: readEmail, text: 'E-mail address of an operator, in place of SLUG and EMAIL.' },
    },
    run: async ({ SLUG, EMAIL, operator }, { store, objects }) => {
      const removed = operator ?? EMAIL;
      if (removed === undefined || (operator === undefined) === (SLUG === undefined)) {
        throw new UsageError('Name an account and an e-mail address, or an operator with --operator');
      }
      const account = SLUG === undefined ? '' : await findAccount(store, SLUG);
      const revocation = { kind: 'person', account, email: removed } as const;
      await revoke(objects, store.clock.now(), revocation, () => removePerson(store, account, removed));
      return { value: { removed }, text: `${removed} is removed.\n` };
    },
  }),
};
