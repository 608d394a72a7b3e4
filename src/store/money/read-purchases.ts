import { isJsonObject, parseJson } from '../../base/parse-json.ts';
import type { EndedPurchase } from '../../model/purchase.ts';
import { keys } from '../keys.ts';
import { type RecordStore, text } from '../script.ts';

export async function readPurchase(store: RecordStore, accountId: string, id: string): Promise<EndedPurchase | null> {
  const json = await store.connection.read(['HGET', keys.bought(accountId), id]);
  return json === null ? null : parsePurchase(text(json));
}

/** Reads a purchase; `null` for one that is damaged. */
function parsePurchase(json: string): EndedPurchase | null {
  const read = parseJson(json);
  return isJsonObject(read) && typeof read.state === 'string' ? (read as unknown as EndedPurchase) : null;
}

/** Returns the ended purchases of an account, newest first, without those that are damaged. */
export async function listPurchases(store: RecordStore, accountId: string): Promise<EndedPurchase[]> {
  const found = await store.connection.read(['HVALS', keys.bought(accountId)]);
  return found.flatMap((json) => parsePurchase(json) ?? []).sort((a, b) => b.ended_at - a.ended_at);
}

/** Returns the purchase that the provider knows by this payment; `null` for a payment that is not ours. */
export async function findPurchase(store: RecordStore, payment: string): Promise<EndedPurchase | null> {
  const [account = '', id = ''] = text(await store.connection.read(['HGET', keys.payments, payment])).split('/');
  return account === '' ? null : readPurchase(store, account, id);
}
