import { refuse } from '../base/errors.ts';
import { changeTopup, topupJson } from '../billing/change-topup.ts';
import { readTopupChoice, type TopupChoice, topupOf } from '../model/topup.ts';
import { readTopup } from '../store/money/set-topup.ts';
import { changeRoute, type DashboardRoute, readRoute } from './dashboard-app.ts';
import { type GivenMembers, requireKnown, requireRead } from './given-values.ts';

/** Members of the body by the field that they choose, with the type of their values besides null. */
const members = {
  enabled: ['enabled', 'boolean'],
  threshold_percent: ['threshold_percent', 'number'],
  customer: ['customer', 'string'],
  payment_method: ['payment_method', 'string'],
  monthly_cap_cents: ['monthly_cap_cents', 'number'],
} as const;
const packMembers = {
  title: ['pack_title', 'string'],
  total: ['pack_total', 'number'],
  price_cents: ['price_cents', 'number'],
  currency: ['currency', 'string'],
} as const;

/** The automatic top-up of an account: what it buys, when, and at most for how much. */
export function topupRoutes(hasProvider: boolean): DashboardRoute[] {
  return [
    readRoute('/api/topup', async ({ store, accountId }) => ({
      status: 200,
      body: topupJson(topupOf(await readTopup(store, accountId))),
    })),
    changeRoute('PUT', '/api/topup', 'money', async ({ store, accountId, given }) => {
      const topup = await changeTopup(store, accountId, readChoice(given), { by: 'owner', hasProvider });
      return { status: 200, body: topupJson(topup) };
    }),
  ];
}

/** Reads what GET answers; what only we know of it, such as the last purchase, is ignored. */
function readChoice(given: GivenMembers): Partial<TopupChoice> {
  requireKnown(given, Object.keys(topupJson(topupOf({}))));
  const pack = given.pack ?? {};
  if (typeof pack !== 'object' || Array.isArray(pack))
    throw refuse('bad_request', 'Bad Request: pack must be an object');
  requireKnown(pack as GivenMembers, Object.keys(packMembers), 'pack');
  const chosen = { ...pick(given, members), ...pick(pack as GivenMembers, packMembers) };
  return requireRead(readTopupChoice(chosen));
}

function pick(given: GivenMembers, from: Readonly<Record<string, readonly [string, string]>>): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [name, [field, type]] of Object.entries(from)) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (value === undefined) continue;
    if (value !== null && typeof value !== type) throw refuse('bad_request', `Bad Request: ${name} must be a ${type}`);
    found[field] = value;
  }
  return found;
}
