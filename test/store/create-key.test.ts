import { expect } from 'chai';
import type { Actor } from '../../src/model/audit.ts';
import { createKey, newKey } from '../../src/store/accounts/create-key.ts';
import { listKeys } from '../../src/store/accounts/read-keys.ts';
import { keys } from '../../src/store/keys.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { anAccount, type TestStore } from '../support/record.ts';

describe('the creation of a key', () => {
  let store: TestStore;
  eachWithEmptyRecord((opened) => {
    store = opened;
  });

  it('keeps the text of the key neither in its fields nor in the audit log, where its caller passes it along', async () => {
    const { accountId } = await anAccount(store);
    const actor: Actor = { via: 'dashboard', who: 'ada@example.com', from: '192.0.2.9' };
    const { key, ...fresh } = newKey(accountId);
    const given = { key, ...fresh, alias: 'new', category: 'films' };
    await createKey({ ...store, actor }, accountId, given);
    const fields = await store.connection.read(['HGETALL', keys.key(fresh.hash)]);
    const noted = await store.connection.read(['XRANGE', keys.audit(accountId), '-', '+']);
    const kept = JSON.stringify([fields, noted]);
    expect(kept).to.include('films');
    expect(kept).not.to.include(key);
  });

  it('lists a key whose alias is the name of a property that every object inherits', async () => {
    const { accountId } = await anAccount(store);
    const aliases = ['__proto__', 'constructor'];
    for (const alias of aliases) await createKey(store, accountId, { ...newKey(accountId), alias });
    const listed = await listKeys(store, accountId);
    expect(listed.map(({ alias }) => alias)).to.include.members(aliases);
  });
});
