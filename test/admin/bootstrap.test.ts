import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readKey } from '../../src/model/api-key.ts';
import { createAccount } from '../../src/store/accounts/create-account.ts';
import { createKey } from '../../src/store/accounts/create-key.ts';
import { deleteKey } from '../../src/store/accounts/delete-key.ts';
import { listAccounts } from '../../src/store/accounts/read-accounts.ts';
import { listKeys } from '../../src/store/accounts/read-keys.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { trawl } from '../support/operator.ts';
import { storeOf, type TestStore } from '../support/record.ts';
import { aFolder, startTestServer, type TestRecord } from '../support/redis.ts';

describe('trawl bootstrap', () => {
  const { folder, remove } = aFolder();
  const file = join(folder, 'key');
  let redis: TestRecord;
  let store: TestStore;

  before(async () => {
    redis = await startTestServer();
    store = storeOf(redis.connection);
  });
  beforeEach(() => redis.flush());
  after(async () => {
    await redis?.stop();
    remove();
  });

  const run = (...words: string[]) => {
    const env = { TRAWL_REDIS_URL: redis.url, TRAWL_DURABILITY: 'relaxed' };
    return trawl(['bootstrap', ...words], env);
  };
  const make = (...more: string[]) => run('--account', 'films', '--key-file', file, ...more);
  const newKey = async () => {
    const { out } = await run('--new-key');
    writeFileSync(file, out);
    return out.trim();
  };

  it('creates an account with the key of a file and does not show it', async () => {
    const key = await newKey();
    const { code, out, err } = await make('--credits', '7');
    expect({ code, err }).to.deep.equal({ code: 0, err: '' });
    expect(out).to.include('with 7 credits').and.not.include(key.slice(0, 20));
    const { accountId = '', keyId } = readKey(key) ?? {};
    expect(await listAccounts(store)).to.deep.equal([['films', accountId]]);
    expect((await listKeys(store, accountId)).map(({ id }) => id)).to.deep.equal([keyId]);
    const { balances } = await readSnapshot(store, accountId);
    expect(balances.credits_given).to.equal(7);
  });

  it('leaves an account that is there as it is, and finishes one whose making was interrupted', async () => {
    const key = await newKey();
    const { accountId = '' } = readKey(key) ?? {};
    await createAccount(store, accountId, 'films', { name: 'films' });
    expect((await make()).out).to.include('with 100 credits');
    const before = await readSnapshot(store, accountId);
    expect((await make('--credits', '5')).out).to.include('nothing has changed');
    expect((await readSnapshot(store, accountId)).balances).to.deep.equal(before.balances);
  });

  it('finishes one that was interrupted between its key and its credits', async () => {
    const { accountId = '', keyId: id = '', hash = '' } = readKey(await newKey()) ?? {};
    await createAccount(store, accountId, 'films', { name: 'films' });
    await createKey(store, accountId, { id, alias: 'first', hash });
    expect((await make()).out).to.include('with 100 credits');
    expect((await readSnapshot(store, accountId)).balances.credits_given).to.equal(100);
  });

  it('brings back no key that was deleted since, whatever the credits are now', async () => {
    const { accountId = '' } = readKey(await newKey()) ?? {};
    await make();
    await deleteKey(store, accountId, 'first');
    const { code, out } = await make('--credits', '5');
    expect({ code, keys: await listKeys(store, accountId) }).to.deep.equal({ code: 0, keys: [] });
    expect(out).to.include('nothing has changed');
  });

  it('refuses the slug of another account, and a file without a key', async () => {
    await newKey();
    await make();
    await newKey();
    const other = await make();
    expect(other.code).to.equal(1);
    expect(other.err).to.include('The account films is another one than that of the key');
    writeFileSync(file, 'no key');
    expect((await make()).code).to.equal(2);
  });

  it('names the option that is missing when it is called without any', async () => {
    const { code, err } = await run();
    expect({ code, line: err.split('\n')[0] }).to.deep.equal({ code: 2, line: '--account is missing' });
  });

  it('says in a sentence that the file of the key cannot be read', async () => {
    for (const [path, code] of [
      [join(folder, 'missing'), 'ENOENT'],
      [folder, 'EISDIR'],
    ] as const) {
      const read = await run('--account', 'films', '--key-file', path);
      expect(read.code).to.equal(2);
      expect(read.err).to.match(new RegExp(`^--key-file names a file that cannot be read \\(${code}\\)\nUsage: .*\n$`));
    }
  });
});
