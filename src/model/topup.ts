import type { RefusalCode } from '../base/errors.ts';
import type { Plan } from './account.ts';
import { type ReadInput, readPackTitle, readSwitch, readWhole, readWholeOrNone } from './operator-input.ts';
import type { Offer } from './purchase.ts';

export interface TopupChoice {
  readonly enabled: boolean;
  readonly threshold_percent: number;
  readonly pack_title: string | null;
  readonly pack_total: number | null;
  readonly price_cents: number | null;
  readonly currency: string | null;
  readonly customer: string | null;
  readonly payment_method: string | null;
  /** `null` means no cap. */
  readonly monthly_cap_cents: number | null;
}

/** The automatic top-up of an account. Times are milliseconds. */
export interface Topup extends TopupChoice {
  readonly last_purchase_at: number | null;
  readonly cap_mailed_at: number | null;
}

// A stored payment method is good only together with the customer it belongs to.
const needed = ['pack_title', 'pack_total', 'price_cents', 'currency', 'customer', 'payment_method'] as const;

export const topupCooldownMs = 72 * 3_600_000;
const minThresholdPercent = 10;

export function topupOf(fields: Readonly<Record<string, string>>): Topup {
  const number = (name: keyof Topup) => (fields[name] ? Number(fields[name]) : null);
  return {
    enabled: fields.enabled === '1',
    threshold_percent: number('threshold_percent') ?? minThresholdPercent,
    pack_title: fields.pack_title || null,
    pack_total: number('pack_total'),
    price_cents: number('price_cents'),
    currency: fields.currency || null,
    customer: fields.customer || null,
    payment_method: fields.payment_method || null,
    monthly_cap_cents: number('monthly_cap_cents'),
    last_purchase_at: number('last_purchase_at'),
    cap_mailed_at: number('cap_mailed_at'),
  };
}

/** When the 72 hours after the last purchase are over; `null` without one. */
export function nextPossibleAt(topup: Pick<Topup, 'last_purchase_at'>): number | null {
  return topup.last_purchase_at === null ? null : topup.last_purchase_at + topupCooldownMs;
}

export function enablingProblem(
  topup: TopupChoice,
  plan: Pick<Plan, 'paid'> | null,
  providerConfigured: boolean,
): Extract<RefusalCode, 'paid_plan_only' | 'topup_incomplete' | 'no_provider'> | null {
  if (!plan?.paid) return 'paid_plan_only';
  if (needed.some((name) => topup[name] === null)) return 'topup_incomplete';
  return providerConfigured ? null : 'no_provider';
}

/** Returns why an owner may not have this setting: the price is the operator's, and a card is stored by its owner at the checkout. */
export function ownerProblem(before: TopupChoice, wanted: TopupChoice, offers: readonly Offer[]): string | null {
  const isSame = (name: keyof TopupChoice) => before[name] === wanted[name];
  if (!isSame('customer') || !isSame('payment_method')) return 'A payment method is stored at the checkout, not here';
  if ((['pack_title', 'pack_total', 'price_cents', 'currency'] as const).every(isSame)) return null;
  const isOffered = offers.some(
    ({ title, credits, price_cents, currency }) =>
      title === wanted.pack_title &&
      credits === wanted.pack_total &&
      price_cents === wanted.price_cents &&
      currency === wanted.currency,
  );
  return isOffered ? null : 'The pack must be one of the offers, at its price';
}

/** The chosen values, read from the words of a command or from JSON; one that is `undefined` is not chosen. */
export function readTopupChoice(values: Readonly<Record<string, unknown>>): ReadInput<Partial<TopupChoice>> {
  const choice: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(readers, name)) return { problem: `${name} is not a setting of automatic top-up` };
    const read = readers[name as keyof TopupChoice](value);
    if (read.problem !== undefined) return read;
    choice[name] = read.value;
  }
  return { value: choice };
}

const readers: { readonly [F in keyof TopupChoice]: (value: unknown) => ReadInput<TopupChoice[F]> } = {
  enabled: (value) => readSwitch(value, 'enabled'),
  threshold_percent: (value) => readWhole(value, { min: minThresholdPercent, max: 30, subject: 'threshold_percent' }),
  pack_title: orNull(readPackTitle),
  pack_total: orNull((value) => readWhole(value, { min: 1, subject: 'pack_total' })),
  price_cents: orNull((value) => readWhole(value, { min: 1, subject: 'price_cents' })),
  currency: orNull(readCurrency),
  customer: orNull((value) => readReference(value, 'customer')),
  payment_method: orNull((value) => readReference(value, 'payment_method')),
  monthly_cap_cents: (value) => readWholeOrNone(value, { min: 1, subject: 'monthly_cap_cents' }),
};

function orNull<T>(read: (value: unknown) => ReadInput<T>): (value: unknown) => ReadInput<T | null> {
  return (value) => (value === null ? { value: null } : read(value));
}

export function readCurrency(value: unknown): ReadInput<string> {
  if (typeof value === 'string' && /^[A-Za-z]{3}$/.test(value)) return { value: value.toLowerCase() };
  return { problem: 'currency must be three letters, as eur' };
}

export function readReference(value: unknown, subject: string): ReadInput<string> {
  if (typeof value === 'string' && /^[A-Za-z0-9_-]{1,255}$/.test(value)) return { value };
  return { problem: `${subject} must be an id of the payment provider: letters, digits, _ and -` };
}
