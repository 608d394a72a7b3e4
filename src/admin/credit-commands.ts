import { createHash, randomBytes } from 'node:crypto';
import { refuse } from '../base/errors.ts';
import { packItem } from '../model/money.ts';
import { readPackTitle, readPurchasedAt } from '../model/operator-input.ts';
import { findAccount } from '../store/accounts/read-accounts.ts';
import { addPack } from '../store/money/add-pack.ts';
import { grantCredits } from '../store/money/grant-credits.ts';
import { command } from './command.ts';
import { oneLine, slug, someLine, wholeNumber } from './command-values.ts';
import { fieldText, timeText } from './text-table.ts';

export const creditCommands = {
  'pack add': command({
    text: 'Adds a pack to an account; packs are drawn from in the order of their purchase.',
    json: '{id, title, purchased_at, total, used, remaining, percent_used, exhausted}',
    operands: { SLUG: slug },
    options: {
      title: { value: 'T', read: readPackTitle, text: 'Title for people.', required: true },
      total: { value: 'N', read: wholeNumber(1), text: 'Credits in it.', required: true },
      'purchased-at': { value: 'DATE', read: readPurchasedAt, text: 'Time of the purchase; now unless given.' },
      id: { value: 'ID', read: someLine, text: 'Makes a repetition safe: one pack is added per id.' },
    },
    run: async (given, { store }) => {
      const { title, total, 'purchased-at': purchasedAt } = given;
      const now = store.clock.now();
      const wanted = { id: packIdOf(given.id, now), title, total, purchased_at: purchasedAt ?? now };
      const pack = await addPack(store, await findAccount(store, given.SLUG), wanted);
      const { id, purchased_at } = pack;
      const isAnother = purchasedAt !== undefined && purchasedAt !== purchased_at;
      if (pack.title !== title || pack.total !== total || isAnother)
        throw refuse('already_exists', `Another pack was added with the id ${given.id}`);
      return {
        value: packItem(pack),
        text: fieldText({ id, title, total, 'purchased (UTC)': timeText(purchased_at) }),
      };
    },
  }),
  'credits add': command({
    text: 'Grants credits to an account.',
    json: '{given, consumed, remaining}',
    operands: { SLUG: slug, N: { read: wholeNumber(1), text: 'Number of credits.' } },
    options: {
      reason: { value: 'TEXT', read: oneLine, text: 'Reason, shown in the ledger.' },
      id: { value: 'ID', read: someLine, text: 'Makes a repetition safe: credits are added once per id.' },
    },
    run: async (given, { store }) => {
      const { given: all, consumed } = await grantCredits(store, await findAccount(store, given.SLUG), given.N, given);
      const credits = { given: all, consumed, remaining: Math.max(0, all - consumed) };
      return { value: credits, text: fieldText(credits) };
    },
  }),
};

/**
 * Returns the same id of a pack for each repetition of an operator's id, whatever its length and letters. Without one it begins with the time:
 * packs of one purchase date are drawn in the order of their ids.
 */
function packIdOf(given: string | undefined, now: number): string {
  if (given === undefined) return now.toString(16).padStart(12, '0') + randomBytes(6).toString('hex');
  return createHash('sha256').update(given).digest('hex').slice(0, 24);
}
