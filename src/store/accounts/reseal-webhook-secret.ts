import type { Seal } from '../../base/seal.ts';
import { keys } from '../keys.ts';
import { type RecordStore, run, script, text } from '../script.ts';
import { listAccounts } from './read-accounts.ts';

const purpose = 'webhook_secret';
/** Accounts whose secrets are read in one go. */
const maxRead = 500;

/** Replaces the sealed webhook secret of an account, unless another one was set meanwhile. Answers {'resealed'} or {'changed'}. */
const resealScript = script('reseal-webhook-secret', 'always', ['account'], ['sealed', 'resealed'])`
if redis.call('HGET', account, 'webhook_secret') ~= sealed then return { 'changed' } end
redis.call('HSET', account, 'webhook_secret', resealed)
return { 'resealed' }
`;

/**
 * Seals the webhook secret of an account with the current TRAWL_SECRET. Returns false when neither secret opens it; true also for an
 * account without one.
 */
export async function resealWebhookSecret(
  store: RecordStore,
  accountId: string,
  seal: Pick<Seal, 'open' | 'seal'>,
): Promise<boolean> {
  const sealed = text(await store.connection.read(['HGET', keys.account(accountId), purpose]));
  if (sealed === '') return true;
  const plain = seal.open(purpose, sealed);
  if (plain === null) return false;
  await run(store, resealScript, { accountId, sealed, resealed: seal.seal(purpose, plain) });
  return true;
}

/** Returns the slugs of the accounts whose webhook secret is sealed with a TRAWL_SECRET that is not known: their webhooks cannot be signed. */
export async function listUnreadableSecrets(
  store: Pick<RecordStore, 'connection'>,
  seal: Pick<Seal, 'open'>,
): Promise<string[]> {
  const unreadable: string[] = [];
  const accounts = await listAccounts(store);
  while (accounts.length > 0) {
    const some = accounts.splice(0, maxRead);
    const found = await store.connection.readAll(some.map(([, id]) => ['HGET', keys.account(id), purpose]));
    for (const [n, [slug]] of some.entries()) {
      const sealed = text(found[n]);
      if (sealed !== '' && seal.open(purpose, sealed) === null) unreadable.push(slug);
    }
  }
  return unreadable;
}
