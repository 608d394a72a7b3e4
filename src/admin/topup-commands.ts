import { UsageError } from '../base/command-line.ts';
import { refuse } from '../base/errors.ts';
import { changeTopup, topupJson } from '../billing/change-topup.ts';
import { readPackTitle, readPlanName } from '../model/operator-input.ts';
import { type Offer, writePrice } from '../model/purchase.ts';
import { readCurrency, readReference, type Topup, type TopupChoice, topupOf } from '../model/topup.ts';
import { findAccount } from '../store/accounts/read-accounts.ts';
import { listOffers, removeOffer, setOffer } from '../store/money/offers.ts';
import { readTopup } from '../store/money/set-topup.ts';
import { command, fieldsGiven, type OptionsFor } from './command.ts';
import { slug, wholeNumber, wholeNumberOrNone, yesOrNo } from './command-values.ts';
import { fieldText, listResult, timeText } from './text-table.ts';

const fields =
  'enabled, threshold_percent, pack, customer, payment_method, monthly_cap_cents, last_purchase_at, next_possible_at';
const text = 'A top-up buys one pack with the stored payment method when the balance falls below the threshold.';

const choices = {
  enabled: {
    value: 'yes|no',
    read: yesOrNo,
    text: 'Needs a paid plan, pack, price and payment method; buys nothing by itself.',
  },
  'threshold-percent': {
    value: '10..30',
    read: wholeNumber(10, 30),
    text: 'Percent of the quota and the pack below which one is bought.',
  },
  'pack-title': { value: 'T', read: readPackTitle, text: 'Title of the pack for people.' },
  'pack-total': { value: 'N', read: wholeNumber(1), text: 'Credits in the pack.' },
  'price-cents': {
    value: 'N',
    read: wholeNumber(1),
    text: 'Price of the pack in the smallest unit of the currency, as Stripe counts it: 500 is EUR 5.00, HUF 5.00 or JPY 500.',
  },
  currency: { value: 'C', read: readCurrency, text: 'Three letters, such as eur.' },
  customer: { value: 'ID', read: readReference, text: 'Customer at the payment provider.' },
  'payment-method': {
    value: 'ID',
    read: readReference,
    text: 'Stored payment method of that customer at the payment provider.',
  },
  'monthly-cap-cents': {
    value: 'N|none',
    read: wholeNumberOrNone(1),
    text: 'Most that top-ups cost in a calendar month (UTC); a purchase beyond it is not made, and one mail says so.',
  },
} satisfies OptionsFor<TopupChoice>;
// The option is `--threshold`; the field of the record that it sets has its unit in its name.
const { 'threshold-percent': threshold, ...others } = choices;

export const topupCommands = {
  'topup show': command({
    text: `Shows the automatic top-up of an account. ${text}`,
    json: `{${fields}}`,
    operands: { SLUG: slug },
    run: async (given, { store }) => {
      return resultOf(topupOf(await readTopup(store, await findAccount(store, given.SLUG))));
    },
  }),
  'topup set': command({
    text: `Changes the automatic top-up of an account; an option that is not given keeps its value. ${text}`,
    json: `{${fields}}`,
    operands: { SLUG: slug },
    options: { ...others, threshold },
    run: async (given, { store, config }) => {
      const { SLUG, threshold: threshold_percent, ...rest } = given;
      const chosen = Object.entries({ ...fieldsGiven(rest), threshold_percent }).filter(
        ([, value]) => value !== undefined,
      );
      const choice: Partial<TopupChoice> = Object.fromEntries(chosen);
      const accountId = await findAccount(store, SLUG);
      return resultOf(
        await changeTopup(store, accountId, choice, { by: 'operator', hasProvider: config.stripeKey !== null }),
      );
    },
  }),
};

const name = { read: readPlanName, text: 'Name of the offer.' } as const;
const offerOptions = {
  title: choices['pack-title'],
  credits: choices['pack-total'],
  'price-cents': choices['price-cents'],
  currency: choices.currency,
} as const;

export const offerCommands = {
  'offer set': command({
    text: 'Creates an offer, which is a pack that owners may buy, or changes it; an option that is not given keeps its value. A new offer needs all of them.',
    json: '{name, title, credits, price_cents, currency}',
    operands: { NAME: name },
    options: offerOptions,
    run: async (given, { store }) => {
      const { NAME, ...terms } = given;
      const offer = await setOffer(store, { name: NAME, ...fieldsGiven(terms) });
      if (offer !== null) return { value: offer, text: fieldText(rowOf(offer)) };
      const missing = Object.keys(offerOptions).filter((option) => !(option in terms));
      throw new UsageError(`--${missing.join(', --')} must be given: there is no offer ${NAME} yet`);
    },
  }),
  'offer list': command({
    text: 'Lists the offers, cheapest first.',
    json: '[{name, title, credits, price_cents, currency}]',
    run: async (_, { store }) => listResult(await listOffers(store), (offer) => offer, rowOf, 'There are no offers.'),
  }),
  'offer remove': command({
    text: 'Removes an offer; what was bought stays.',
    json: '{removed}',
    operands: { NAME: name },
    run: async (given, { store }) => {
      if (!(await removeOffer(store, given.NAME))) throw refuse('not_found', `There is no offer ${given.NAME}`);
      return { value: { removed: given.NAME }, text: `The offer ${given.NAME} is removed.\n` };
    },
  }),
};

function rowOf({ name, title, credits, price_cents, currency }: Offer) {
  return { name, title, credits, price: writePrice(price_cents, currency) };
}

function resultOf(topup: Topup) {
  const shown = topupJson(topup);
  const { pack, last_purchase_at, next_possible_at, ...rest } = shown;
  const when = (time: string | null) => (time === null ? null : timeText(Date.parse(time)));
  const { price_cents, currency } = pack;
  const price = price_cents === null || currency === null ? null : writePrice(price_cents, currency);
  const times = { 'last purchase (UTC)': when(last_purchase_at), 'next possible (UTC)': when(next_possible_at) };
  return { value: shown, text: fieldText({ ...rest, pack: pack.title, credits: pack.total, price, ...times }) };
}
