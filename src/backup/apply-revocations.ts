import { nullWhen } from '../base/errors.ts';
import type { KeptRevocation } from '../objects/revocations.ts';
import { readAccount } from '../store/accounts/read-accounts.ts';
import { listKeys } from '../store/accounts/read-keys.ts';
import { setAccount } from '../store/accounts/set-account.ts';
import { setKey } from '../store/accounts/set-key.ts';
import { cancelOpenJobs } from '../store/jobs/cancel-open-jobs.ts';
import { removePerson } from '../store/people/remove-person.ts';
import type { RecordStore } from '../store/script.ts';

/** A right that the backup still had and the restored record has not. */
export interface AppliedRevocation {
  readonly kind: KeptRevocation['kind'];
  /** Slug; '' for an operator. */
  readonly account: string;
  /** Alias of the key, or e-mail address; '' for an account. */
  readonly name: string;
  /** When it was revoked, in milliseconds. */
  readonly at: number;
}

/** Takes the rights away again that were revoked after the backup; returns those that it still had. */
export async function applyRevocations(
  store: RecordStore,
  revocations: readonly KeptRevocation[],
): Promise<AppliedRevocation[]> {
  const applied: AppliedRevocation[] = [];
  for (const revocation of revocations) {
    // What was made after the backup is not there.
    const name = await apply(store, revocation).catch(nullWhen('not_found'));
    if (name === null) continue;
    const { kind, account, at } = revocation;
    const slug = account === '' ? '' : (await readAccount(store, account)).slug;
    applied.push({ kind, account: slug, name, at });
  }
  return applied;
}

/** Returns a name for what it took away, `null` where nothing was left to take. */
async function apply(store: RecordStore, revocation: KeptRevocation): Promise<string | null> {
  switch (revocation.kind) {
    case 'key':
      return endKey(store, revocation);
    case 'person':
      await removePerson(store, revocation.account, revocation.email);
      return revocation.email;
    case 'account': {
      if ((await readAccount(store, revocation.account)).suspended) return null;
      await setAccount(store, revocation.account, { suspended: true });
      await cancelOpenJobs(store, revocation.account);
      return '';
    }
  }
}

async function endKey(
  store: RecordStore,
  { account, key: id, ends }: Extract<KeptRevocation, { kind: 'key' }>,
): Promise<string | null> {
  const key = (await listKeys(store, account)).find((one) => one.id === id);
  if (!key?.active) return null;
  if (ends <= store.clock.now()) await setKey(store, account, key.alias, { active: false });
  else if (key.expires === null || key.expires > ends) await setKey(store, account, key.alias, { expires: ends });
  else return null;
  return key.alias;
}
