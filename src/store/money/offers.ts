import { refuse } from '../../base/errors.ts';
import { isJsonObject, membersOf, parseJson } from '../../base/parse-json.ts';
import { type Offer, priceProblem } from '../../model/purchase.ts';
import { recordLimits } from '../../model/record-limits.ts';
import { keys } from '../keys.ts';
import { notedScript, pairs, type RecordStore, runNoted, text } from '../script.ts';

/** Writes what owners may buy, unless the offer is not the text `before` any more ('' for none). Answers {'set'}, {'changed'} or {'too_many'}. */
const setOfferScript = notedScript('set-offer', 'needs memory', ['offers'], ['name', 'before', 'json'])`
if (redis.call('HGET', offers, name) or '') ~= before then return { 'changed' } end
if redis.call('HEXISTS', offers, name) == 0 and redis.call('HLEN', offers) >= ${recordLimits.offers} then return { 'too_many' } end
if note_change() then return { 'audit_full' } end
redis.call('HSET', offers, name, json)
return { 'set' }
`;

/** Answers {'removed'} or {'not_found'}. */
const removeOfferScript = notedScript('remove-offer', 'always', ['offers'], ['name'])`
if redis.call('HEXISTS', offers, name) == 0 then return { 'not_found' } end
if note_change() then return { 'audit_full' } end
redis.call('HDEL', offers, name)
return { 'removed' }
`;

/**
 * Changes the fields of an offer that are named, or creates it. Returns the offer, or null when there is none yet and a field is not
 * named. Throws `too_many`, or `bad_request` for a price that cannot be charged.
 */
export async function setOffer(
  store: RecordStore,
  { name, ...change }: Pick<Offer, 'name'> & Partial<Offer>,
): Promise<Offer | null> {
  // Each turn but the last one is lost to another change of this offer.
  for (;;) {
    const before = text(await store.connection.read(['HGET', keys.offers, name]));
    const known: Partial<Offer> = membersOf(parseJson(before));
    const { title, credits, price_cents, currency } = { ...known, ...change };
    if (title === undefined || credits === undefined || price_cents === undefined || currency === undefined)
      return null;
    const problem = priceProblem(price_cents, currency);
    if (problem !== null) throw refuse('bad_request', problem);
    const terms = { title, credits, price_cents, currency };
    const offer: Offer = { name, ...terms };
    const values = { name, before, json: JSON.stringify(offer) };
    const [word] = await runNoted(store, setOfferScript, values, { action: 'offer.set', target: name, change: terms });
    if (word === 'too_many') throw refuse('too_many', `There are ${recordLimits.offers} offers, which is the limit`);
    if (word === 'set') return offer;
  }
}

/** Returns an offer from its JSON in the record, which `setOffer` wrote; `null` for one that is damaged. */
export function parseOffer(json: string): Offer | null {
  const read = parseJson(json);
  const isWhole = isJsonObject(read) && [read.credits, read.price_cents].every((one) => typeof one === 'number');
  return isWhole ? (read as unknown as Offer) : null;
}

/** Returns the catalogue, cheapest first, without an offer that is damaged. */
export async function listOffers(store: RecordStore): Promise<Offer[]> {
  const found = pairs(await store.connection.read(['HGETALL', keys.offers]));
  const offers = Object.values(found).flatMap((json) => parseOffer(json) ?? []);
  return offers.sort((a, b) => a.price_cents - b.price_cents || (a.name < b.name ? -1 : 1));
}

/** Returns false when there is no such offer. */
export async function removeOffer(store: RecordStore, name: string): Promise<boolean> {
  const [word] = await runNoted(store, removeOfferScript, { name }, { action: 'offer.remove', target: name });
  return word === 'removed';
}
