import type { Plan } from '../../model/account.ts';
import { keys } from '../keys.ts';
import { pairs, type RecordStore } from '../script.ts';

export async function listPlans(store: RecordStore): Promise<Plan[]> {
  const found = pairs(await store.connection.read(['HGETALL', keys.plans]));
  return Object.values(found)
    .map((json) => JSON.parse(json) as Plan)
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

export async function readPlan(store: RecordStore, name: string): Promise<Plan | null> {
  const json = await store.connection.read(['HGET', keys.plans, name]);
  return json === null ? null : (JSON.parse(String(json)) as Plan);
}
