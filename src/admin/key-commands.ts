import { randomBytes } from 'node:crypto';
import { type Key, keyJson, type Quotas, type QuotaWindow, quotaWindows } from '../model/account.ts';
import { makeAccountId } from '../model/api-key.ts';
import { readAlias, readCategory } from '../model/operator-input.ts';
import { changeKey, revoke } from '../objects/revocations.ts';
import { createAccount } from '../store/accounts/create-account.ts';
import { createKey, newKey } from '../store/accounts/create-key.ts';
import { deleteKey } from '../store/accounts/delete-key.ts';
import { findAccount } from '../store/accounts/read-accounts.ts';
import { findKey, listKeys } from '../store/accounts/read-keys.ts';
import { setKey } from '../store/accounts/set-key.ts';
import { grantCredits } from '../store/money/grant-credits.ts';
import { command, type ParseValue } from './command.ts';
import { expiryTime, orNull, slug, wholeNumber, wholeNumberOrNone, yesOrNo } from './command-values.ts';
import { fieldText, listResult, tableText, timeText } from './text-table.ts';

const alias = { read: readAlias, text: 'Alias of the key.' } as const;
const category = { value: 'C', read: readCategory, text: 'Free text without effect.' } as const;
const expiryOrNever = orNull('never', expiryTime);
const quotas = quotaOptions('N', wholeNumber(0));
const quotasOrNone = quotaOptions('N|none', wholeNumberOrNone(0));

export const keyCommands = {
  'key create': command({
    text: 'Creates an API key of an account and shows it, this once.',
    json: '{id, alias, key}',
    operands: { SLUG: slug },
    options: {
      alias: { value: 'A', read: readAlias, text: 'Alias of the key, unique in the account.', required: true },
      category,
      expires: {
        value: 'DATE',
        read: expiryTime,
        text: 'Last day (UTC) or moment at which the key works; for ever unless given.',
      },
      ...quotas,
    },
    run: async (given, { store }) => {
      const account = await findAccount(store, given.SLUG);
      const { key, id, hash } = newKey(account);
      const { alias, category, expires } = given;
      await createKey(store, account, { id, alias, hash, category, expires, quotas: quotasOf(given) });
      const value = { id, alias, key };
      return { value, text: `${fieldText(value)}The key cannot be shown again: only its hash is kept.\n` };
    },
  }),
  'account open': command({
    text: 'Creates an account with credits and a key in one step, and shows the key this once: what a first try needs.',
    json: '{slug, credits, key}',
    operands: { SLUG: slug },
    options: { credits: { value: 'N', read: wholeNumber(1), text: 'Credits of the account; 100 unless given.' } },
    run: async ({ SLUG, credits = 100 }, { store }) => {
      const account = makeAccountId(randomBytes(16));
      const { key, id, hash } = newKey(account);
      await createAccount(store, account, SLUG, { name: SLUG });
      await grantCredits(store, account, credits, { id: 'first' });
      await createKey(store, account, { id, alias: 'first', hash });
      const value = { slug: SLUG, credits, key };
      return { value, text: `${fieldText(value)}The key cannot be shown again: only its hash is kept.\n` };
    },
  }),
  'key list': command({
    text: 'Lists the keys of an account, oldest first.',
    json: '[{id, alias, category, active, expires, quotas, created_at, last_used_at}]',
    operands: { SLUG: slug },
    run: async (given, { store }) => {
      const keys = await listKeys(store, await findAccount(store, given.SLUG));
      return listResult(keys, keyJson, rowOf, 'The account has no keys.');
    },
  }),
  'key set': command({
    text: 'Changes a key from the next request on; an option that is not given keeps its value.',
    json: '{id, alias, category, active, expires, quotas, created_at, last_used_at}',
    operands: { SLUG: slug, ALIAS: alias },
    options: {
      active: {
        value: 'yes|no',
        read: yesOrNo,
        text: 'An inactive key is refused with 401 and keeps all its other values.',
      },
      category,
      expires: { value: 'DATE|never', read: expiryOrNever, text: 'Last day (UTC) or moment at which the key works.' },
      ...quotasOrNone,
    },
    run: async (given, { store, objects }) => {
      const { active, category, expires } = given;
      const account = await findAccount(store, given.SLUG);
      const change = { active, category, expires, quotas: quotasOf(given) };
      const { id } = await findKey(store, account, given.ALIAS);
      const work = () => setKey(store, account, given.ALIAS, change);
      const key = await changeKey(objects, store.clock.now(), { account, key: id }, change, work);
      return { value: keyJson(key), text: tableText([rowOf(key)], '') };
    },
  }),
  'key delete': command({
    text: 'Deletes a key that was never used; a used key can only be deactivated.',
    json: '{deleted}',
    operands: { SLUG: slug, ALIAS: alias },
    run: async (given, { store, objects }) => {
      const account = await findAccount(store, given.SLUG);
      const { id } = await findKey(store, account, given.ALIAS);
      const now = store.clock.now();
      const revocation = { kind: 'key', account, key: id, ends: now } as const;
      await revoke(objects, now, revocation, () => deleteKey(store, account, given.ALIAS));
      return { value: { deleted: true }, text: `The key ${given.ALIAS} is deleted.\n` };
    },
  }),
};

function rowOf({ alias, category, active, expires, quotas, created_at, last_used_at }: Key) {
  const { total, monthly, weekly, daily } = quotas;
  const times = { 'created (UTC)': timeText(created_at), 'last used (UTC)': timeText(last_used_at) };
  return { alias, category, active, 'expires (UTC)': timeText(expires), total, monthly, weekly, daily, ...times };
}

function quotasOf(given: { readonly [W in QuotaWindow as `quota-${W}`]?: number | null | undefined }): Partial<Quotas> {
  return Object.fromEntries(quotaWindows.map((window) => [window, given[`quota-${window}`]]));
}

function quotaOptions<T>(value: string, read: ParseValue<T>) {
  return {
    'quota-total': { value, read, text: 'Most calls in all, ever.' },
    'quota-daily': { value, read, text: 'Most calls in 24 hours.' },
    'quota-weekly': { value, read, text: 'Most calls in 7 days.' },
    'quota-monthly': { value, read, text: 'Most calls in 30 days.' },
  };
}
