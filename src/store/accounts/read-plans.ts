import type { Plan } from '../../model/account.ts';
import { keys } from '../keys.ts';
import { pairs, type RecordStore } from '../script.ts';

export async function listPlans(store: RecordStore): Promise<Plan[]> {
  const found = pairs(await store.connection.read(['HGETALL', keys.plans]));
  return Object.values(found)
    .map(planOf)
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

export async function readPlan(store: RecordStore, name: string): Promise<Plan | null> {
  const json = await readPlanText(store, name);
  return json === null ? null : planOf(json);
}

export async function readPlanText(store: RecordStore, name: string): Promise<string | null> {
  return store.connection.read(['HGET', keys.plans, name]);
}

/** Returns a plan from its JSON in the record, which `setPlan` wrote. */
export function planOf(json: string): Plan {
  return JSON.parse(json) as Plan;
}
