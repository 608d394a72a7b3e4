import type { Plan } from '../../model/account.ts';
import { keys } from '../keys.ts';
import { pairs, type Store } from '../script.ts';

/** All plans, by name. */
export async function listPlans(store: Store): Promise<Plan[]> {
  const found = pairs(await store.connection.read(['HGETALL', keys.plans], keys.plans));
  return Object.values(found)
    .map((json) => JSON.parse(json) as Plan)
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

export async function readPlan(store: Store, name: string): Promise<Plan | null> {
  const json = await store.connection.read(['HGET', keys.plans, name], keys.plans);
  return json === null ? null : (JSON.parse(String(json)) as Plan);
}
