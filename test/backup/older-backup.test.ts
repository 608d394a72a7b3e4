import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { revoke } from '../../src/objects/revocations.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { endPurchase } from '../../src/store/money/end-purchase.ts';
import { readPurchase } from '../../src/store/money/read-purchases.ts';
import { readTopup, setTopup } from '../../src/store/money/set-topup.ts';
import { takePurchase } from '../../src/store/money/take-purchase.ts';
import { admitted, aKey, anAccount, aRunningJob, completed, holder } from '../support/record.ts';
import { eachWithRestoreScene, invite, type RestoreScene } from '../support/restore-scene.ts';
import { until } from '../support/until.ts';

describe('restores of an older backup', () => {
  let target: RestoreScene['target'];
  let store: RestoreScene['store'];
  let restored: RestoreScene['restored'];
  let objects: RestoreScene['objects'];
  let admin: RestoreScene['admin'];
  let backUp: RestoreScene['backUp'];
  let restore: RestoreScene['restore'];
  eachWithRestoreScene((scene) => {
    ({ target, store, restored, objects, admin, backUp, restore } = scene);
  });
  const revokeKey = (account: string, key: string) => {
    const revocation = { kind: 'key', account, key, ends: 1 } as const;
    return revoke(
      async () => objects,
      Date.now(),
      revocation,
      async () => {},
    );
  };

  it('take rights away again that were revoked since, and name them', async () => {
    const [one, other] = [await anAccount(store, { credits: 5 }), await anAccount(store, { credits: 5 })];
    const [leaked, rotated, kept] = [await aKey(store, one.accountId), await aKey(store, one.accountId), one];
    await invite(store, one.accountId, 'gone@example.com');
    await admitted(store, other);
    await backUp();
    const now = Date.now();
    const account = one.accountId;
    const nothing = async () => {};
    const open = async () => objects;
    const made = randomUUID();
    const later = now + 3_600_000;
    await revoke(open, now, { kind: 'key', account, key: leaked.keyId, ends: now }, nothing);
    await revoke(open, now, { kind: 'key', account, key: rotated.keyId, ends: later }, nothing);
    await revoke(open, now, { kind: 'key', account, key: made, ends: now }, nothing);
    await revoke(open, now, { kind: 'person', account, email: 'gone@example.com' }, nothing);
    await revoke(open, now, { kind: 'account', account: other.accountId }, () =>
      setAccount(store, other.accountId, { suspended: true }),
    );
    const { json } = await restore();
    const named = json.revoked.map(({ kind, account: slug, name }: Record<string, string>) => [kind, slug, name]);
    expect(named).to.have.deep.members([
      ['key', one.slug, leaked.keyId.slice(0, 8)],
      ['key', one.slug, rotated.keyId.slice(0, 8)],
      ['person', one.slug, 'gone@example.com'],
      ['account', other.slug, ''],
    ]);
    const keyFacts = (hash: string) => target.connection.send(['HMGET', keys.key(hash), 'active', 'expires']);
    expect(await keyFacts(leaked.hash)).to.deep.equal(['0', '']);
    expect(await keyFacts(rotated.hash)).to.deep.equal(['1', String(later)]);
    expect(await keyFacts(kept.hash)).to.deep.equal(['1', '']);
    expect(await target.connection.send(['HLEN', keys.people(account)])).to.equal(0);
    const facts = await target.connection.send(['HMGET', keys.account(other.accountId), 'suspended', 'held']);
    expect(facts).to.deep.equal(['1', '0']);
  });

  it('leave what was revoked and given back since, and its open jobs', async () => {
    const caller = await anAccount(store, { credits: 5 });
    const { accountId, slug, keyId, hash } = caller;
    const [again, ended] = [await aKey(store, accountId), await aKey(store, accountId)];
    await admitted(store, caller);
    await backUp();
    const change = async (...line: string[]) => {
      await admin(...line);
      // Each command reads the clock of Redis anew, to some milliseconds, and of two changes at one moment the revocation stands.
      const end = Date.now() + 150;
      await until(() => Date.now() > end, 5, 'another moment');
    };
    const aliasOf = (key: { keyId: string }) => key.keyId.slice(0, 8);
    for (const suspended of ['yes', 'no']) await change('account', 'set', slug, '--suspended', suspended);
    for (const active of ['no', 'yes']) await change('key', 'set', slug, aliasOf(again), '--active', active);
    for (const active of ['no', 'yes', 'no']) await change('key', 'set', slug, aliasOf(ended), '--active', active);
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    await change('key', 'set', slug, keyId.slice(0, 8), '--expires', soon);
    await change('key', 'set', slug, keyId.slice(0, 8), '--active', 'yes');
    const { json } = await restore();
    const named = json.revoked.map(({ kind, name }: Record<string, string>) => [kind, name]);
    expect(named).to.have.deep.members([
      ['key', aliasOf(ended)],
      ['key', keyId.slice(0, 8)],
    ]);
    const keyFacts = (one: string) => target.connection.send(['HMGET', keys.key(one), 'active', 'expires']);
    expect(await keyFacts(again.hash)).to.deep.equal(['1', '']);
    expect(await keyFacts(ended.hash)).to.deep.include('0');
    expect(await keyFacts(hash)).to.deep.equal(['1', String(Date.parse(soon))]);
    const facts = await target.connection.send(['HMGET', keys.account(accountId), 'suspended', 'held']);
    expect(facts).to.deep.equal(['0', '1']);
  });

  it('warn when the backup is older than what is kept of revocations', async () => {
    const { accountId, keyId } = await anAccount(store);
    const { folder } = await backUp();
    const { begun_at } = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
    expect((await restore()).json.revocations_since).to.equal(begun_at);
    changeManifest(folder, { begun_at: new Date(Date.now() - 401 * 86_400_000).toISOString() });
    await revokeKey(accountId, keyId);
    const { json } = await restore('--replace');
    expect(Date.parse(json.revocations_since)).to.be.closeTo(Date.now() - 400 * 86_400_000, 60_000);
    expect(json.revoked).to.have.length(1);
    expect((await restore('--replace', '--without-files')).json.revocations_since).to.equal(null);
  });

  it('take away everything that is known to be revoked when the clock was ahead at the backup, because its time says nothing', async () => {
    const { accountId, slug, keyId, hash } = await anAccount(store);
    const { folder } = await backUp();
    const ahead = new Date(Date.now() + 3_600_000).toISOString();
    changeManifest(folder, { begun_at: ahead, taken_at: ahead });
    await revokeKey(accountId, keyId);
    const { json } = await restore();
    expect(json.revoked.map(({ account }: Record<string, string>) => account)).to.deep.equal([slug]);
    expect(Date.parse(json.revocations_since)).to.be.closeTo(Date.now() - 400 * 86_400_000, 60_000);
    expect(await target.connection.send(['HGET', keys.key(hash), 'active'])).to.equal('0');
  });

  it('list the jobs whose objects the record does not know, and keep these objects', async () => {
    const caller = await anAccount(store, { credits: 5 });
    const known = await aRunningJob(store, caller);
    await backUp();
    const later = await aRunningJob(store, caller);
    for (const { id } of [known, later]) {
      await objects.keep(`${id}/1/media.mp4`, Buffer.from('a film'));
      await settleJob(store, holder, known, completed);
    }
    await objects.keep('days/paid/x/0/lines.gz', Buffer.from('lines'));
    const { json } = await restore();
    expect(json.unknown_jobs).to.deep.equal([later.id]);
    expect(await objects.see(`${later.id}/1/media.mp4`)).not.to.equal(null);
    expect(await target.connection.send(['ZCARD', keys.strays])).to.equal(1);
  });

  it('disable every automatic top-up, and drop a purchase that was never tried: it may be paid, over its cap or unwanted', async () => {
    const { accountId, slug } = await anAccount(store, { quota: 5, paid: true });
    await setTopup(store, accountId, { enabled: '1', pack_total: '10', monthly_cap_cents: '100', price_cents: '90' });
    const since = Date.now() - 26 * 3_600_000;
    const fields = ['purchase', 'asked', 'purchase_attempts', '0', 'purchase_since', String(since)];
    await store.connection.send(['HSET', keys.topup(accountId), ...fields]);
    await store.connection.send(['ZADD', keys.purchases, String(since), accountId]);
    await anAccount(store);
    await backUp();
    const { json } = await restore();
    expect(json.disabled_topups).to.deep.equal([slug]);
    expect(await target.connection.send(['HGET', keys.account(accountId), 'topup'])).to.equal('');
    expect(await takePurchase(restored, accountId, 90_000)).to.equal(null);
    const topup = await readTopup(restored, accountId);
    expect(topup).to.include({ enabled: '0', purchase: '', monthly_cap_cents: '100' });
    expect(Number(topup.last_purchase_at)).to.be.closeTo(Date.now(), 60_000);
  });

  it('give no number of an invoice again that was given since', async () => {
    const paid = async (of: typeof store, accountId: string, id: string) => {
      const terms = {
        pack_title: 'P',
        pack_total: 5,
        price_cents: 9,
        currency: 'eur',
        customer: '',
        payment_method: '',
      };
      const seller = { name: '', address: '', tax: '' };
      const purchase = { id, account: accountId, kind: 'offer', ...terms } as const;
      await endPurchase(of, purchase, { verdict: 'paid', payment: id, seller });
      return (await readPurchase(of, accountId, id))?.invoice;
    };
    const { accountId } = await anAccount(store, { quota: 5 });
    expect(await paid(store, accountId, 'before')).to.equal(1);
    await backUp();
    expect(await paid(store, accountId, 'since')).to.equal(2);
    const { json } = await restore();
    const next = await paid(restored, accountId, 'next');
    // 100 are left out, and one for each minute.
    expect(next).to.be.within(1 + 100 + 1, 150);
    expect(json.next_invoice).to.equal(`INV-000${next}`);
    expect((await restore('--replace', '--nothing-since')).json.next_invoice).to.equal(null);
    expect(await paid(restored, accountId, 'since')).to.equal(2);
  });

  it('leave automatic top-ups as they are when nothing happened after the backup', async () => {
    const { accountId } = await anAccount(store, { quota: 5, paid: true });
    await setTopup(store, accountId, { enabled: '1', pack_total: '10' });
    await backUp();
    expect((await restore('--nothing-since')).json.disabled_topups).to.deep.equal([]);
    expect(await readTopup(restored, accountId)).to.deep.equal({ enabled: '1', pack_total: '10' });
    expect(await target.connection.send(['HGET', keys.account(accountId), 'topup'])).to.equal('1');
  });
});

function changeManifest(folder: string, change: Readonly<Record<string, string>>): void {
  const file = join(folder, 'manifest.json');
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...change }));
}
