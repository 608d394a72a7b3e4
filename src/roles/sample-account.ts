import { randomBytes } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, nullWhen } from '../base/errors.ts';
import { writePrivateFile } from '../base/private-file.ts';
import type { Seal } from '../base/seal.ts';
import { makeAccountId, makeKey, readKey } from '../model/api-key.ts';
import { makePersonSecret, personIdOf } from '../model/person.ts';
import { createAccount } from '../store/accounts/create-account.ts';
import { createKey } from '../store/accounts/create-key.ts';
import { listAccounts } from '../store/accounts/read-accounts.ts';
import { setPlan } from '../store/accounts/set-plan.ts';
import { grantCredits } from '../store/money/grant-credits.ts';
import { invitePerson } from '../store/people/invite-person.ts';
import type { RecordStore } from '../store/script.ts';

const name = 'sample';
const credits = 100;
/** E-mail address of its owner: no mail is ever delivered to names under `.example`. */
const owner = 'owner@sample.example';
/** The trailer of a free film, which the W3C has offered for tests of players since 2010. */
const film = 'https://media.w3.org/2010/05/sintel/trailer.mp4';

/**
 * On a first start, makes a sample account with a plan, 100 credits and one key, and passes the key and the secret of a sign-in link to `show`. The key is
 * first written to a file, sealed, so that the next start finishes one that was killed.
 */
export async function makeSampleAccount(
  store: RecordStore,
  seal: Seal,
  folder: string,
  show: (key: string, signInSecret: string) => void,
): Promise<void> {
  const file = join(folder, name);
  const begun = seal.open(name, await readFile(file, 'utf8').catch(absent));
  const ids = (await listAccounts(store)).map(([, id]) => id);
  if (ids.length > 0 && !ids.some((id) => id === readKey(begun)?.accountId)) return rm(file, { force: true });
  const key = begun ?? makeKey(makeAccountId(randomBytes(16)), randomBytes(32));
  if (begun === null) await writePrivateFile(file, seal.seal(name, key));
  const secret = makePersonSecret(personIdOf(owner), randomBytes(32));
  await makeAccount(store, key, secret);
  show(key, secret);
  await rm(file);
}

/** Returns one line for a shell that shows what the account has. */
export function lineToAsk(url: string, key: string): string {
  return `curl -H 'x-api-key: ${key}' '${url}/v1/usage'`;
}

/** Returns one line for a shell, in the folder of trawl, that fetches a film and shows its progress. */
export function lineToGet(url: string, key: string): string {
  return `TRAWL_API_URL='${url}' TRAWL_API_KEY='${key}' ./trawl get ${film}`;
}

/** Every step may be repeated. */
async function makeAccount(store: RecordStore, key: string, secret: string): Promise<void> {
  const read = readKey(key);
  if (read === null) throw new Error('the key of the sample account cannot be read');
  const { accountId, keyId, hash } = read;
  await setPlan(store, { name, quota: 0, per_second: null, per_minute: null, paid: false });
  await createAccount(store, accountId, name, { name: 'Sample', plan: name }).catch(nullWhen('already_exists'));
  await grantCredits(store, accountId, credits, { id: name });
  await createKey(store, accountId, { id: keyId, alias: name, hash }).catch(nullWhen('already_exists'));
  await invitePerson(store, { accountId, email: owner, role: 'owner', secret, isBound: false });
}

function absent(error: unknown): string {
  if (codeOf(error) !== 'ENOENT') throw error;
  return '';
}
