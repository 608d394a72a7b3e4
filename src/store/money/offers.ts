import { refuse } from '../../base/errors.ts';
import type { Offer } from '../../model/purchase.ts';
import { recordLimits } from '../../model/record-limits.ts';
import { keys } from '../keys.ts';
import { pairs, type RecordStore, run, script } from '../script.ts';

/** Writes what owners may buy. Answers {'set'} or {'too_many'}. */
const setOfferScript = script(
  'set-offer',
  'needs memory',
  ['offers'] as const,
  ['name', 'json'] as const,
  /* lua */ `
if redis.call('HEXISTS', offers, name) == 0 and redis.call('HLEN', offers) >= ${recordLimits.offers} then return { 'too_many' } end
redis.call('HSET', offers, name, json)
return { 'set' }
`,
);

/** Throws `too_many`. */
export async function setOffer(store: RecordStore, offer: Offer): Promise<void> {
  const [word] = await run(store, setOfferScript, { name: offer.name, json: JSON.stringify(offer) });
  if (word === 'too_many') throw refuse('too_many', `There are ${recordLimits.offers} offers, which is the limit`);
}

/** Returns the catalogue, cheapest first. */
export async function listOffers(store: RecordStore): Promise<Offer[]> {
  const found = pairs(await store.connection.read(['HGETALL', keys.offers]));
  const offers = Object.values(found).map((json) => JSON.parse(json) as Offer);
  return offers.sort((a, b) => a.price_cents - b.price_cents || (a.name < b.name ? -1 : 1));
}

/** Returns false when there is no such offer. */
export async function removeOffer(store: RecordStore, name: string): Promise<boolean> {
  return Number(await store.connection.send(['HDEL', keys.offers, name])) > 0;
}
