import { refuse } from '../../base/errors.ts';
import { isJsonObject, parseJson } from '../../base/parse-json.ts';
import type { Plan } from '../../model/account.ts';
import { keys } from '../keys.ts';
import { parseOffer } from '../money/offers.ts';
import { pairs, type RecordStore } from '../script.ts';

export async function listPlans(store: RecordStore): Promise<Plan[]> {
  const found = pairs(await store.connection.read(['HGETALL', keys.plans]));
  return Object.entries(found)
    .map(([name, json]) => parsePlan(json) ?? refusePlan(name))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

export async function readPlan(store: RecordStore, booked: BookedPlan): Promise<Plan | null> {
  const json = await readPlanText(store, booked.name);
  return json === null ? null : planOf(json, booked);
}

export async function readPlanText(store: RecordStore, name: string): Promise<string | null> {
  return store.connection.read(['HGET', keys.plans, name]);
}

/** Plan as an account has booked it. */
type BookedPlan = Pick<Plan, 'name' | 'quota'>;

/** Returns the plan of an account from its JSON in the record. Nothing is known of a damaged one but what the account has booked of it. */
export function planOf(json: string, booked: BookedPlan): Plan {
  return parsePlan(json) ?? { ...booked, per_second: null, per_minute: null, paid: false };
}

/** Returns a plan from its JSON in the record, which `setPlan` wrote; `null` for one that is damaged. */
export function parsePlan(json: string): Plan | null {
  const read = parseJson(json);
  return isJsonObject(read) && typeof read.quota === 'number' ? (read as unknown as Plan) : null;
}

/** Returns a word and the name of each plan and each offer whose record is damaged. */
export async function listDamaged(store: Pick<RecordStore, 'connection'>): Promise<string[]> {
  const [plans, offers] = await store.connection.readAll([
    ['HGETALL', keys.plans],
    ['HGETALL', keys.offers],
  ]);
  const damagedOf = (word: string, flat: unknown, read: (json: string) => unknown) =>
    Object.entries(pairs(flat)).flatMap(([name, json]) => (read(json) === null ? [`${word} ${name}`] : []));
  return [...damagedOf('plan', plans, parsePlan), ...damagedOf('offer', offers, parseOffer)];
}

function refusePlan(name: string): never {
  const remedy = `\`trawl admin plan set ${name} --quota N …\` with all of its options writes it anew`;
  throw refuse('internal_error', `The record of the plan ${name} is damaged: ${remedy}`);
}
