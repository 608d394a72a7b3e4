import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeSeal } from '../../src/base/seal.ts';
import { readKey } from '../../src/model/api-key.ts';
import { authorize } from '../../src/store/access/authorize.ts';
import { findAccount, listLedgerAccounts } from '../../src/store/accounts/read-accounts.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { keys } from '../../src/store/keys.ts';
import { type Operator, type Shape, startOperator } from '../support/operator.ts';
import { admitted, aKey, anAccount } from '../support/record.ts';

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe('plans, accounts and keys', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator();
  });
  after(() => operator.stop());

  /** The fields of an account as the record keeps them. */
  const secretOf = (id: string) => operator.store.connection.read(['HGET', keys.account(id), 'webhook_secret']);

  it('an account is opened with credits and a key in one step, and not twice', async () => {
    const opened = await operator.json('account', 'open', 'first', '--credits', '3');
    expect(opened).to.include({ slug: 'first', credits: 3 });
    expect(readKey(opened.key)?.accountId).to.equal(await findAccount(operator.store, 'first'));
    expect((await operator.json('account', 'show', 'first')).usage).to.include({ remaining: 3 });
    expect((await operator.json<Shape[]>('key', 'list', 'first')).map(({ alias }) => alias)).to.deep.equal(['first']);
    expect(await operator.refused('account', 'open', 'first')).to.include({ code: 'already_exists' });
    expect((await operator.json('account', 'show', 'first')).usage).to.include({ remaining: 3 });
  });

  describe('a plan', () => {
    it('D57: is created, keeps the fields that a change does not name, and is listed', async () => {
      expect(await operator.json('plan', 'set', 'gold', '--quota', '5')).to.deep.equal({
        name: 'gold',
        quota: 5,
        per_second: null,
        per_minute: null,
        paid: false,
      });
      await operator.json('plan', 'set', 'gold', '--per-second', '2', '--per-minute', '9', '--paid', 'yes');
      const changed = { name: 'gold', quota: 6, per_second: 2, per_minute: 9, paid: true };
      expect(await operator.json('plan', 'set', 'gold', '--quota', '6')).to.deep.equal(changed);
      expect(await operator.json('plan', 'set', 'gold', '--per-second', 'none')).to.include({ per_second: null });
      expect((await operator.json<Shape[]>('plan', 'list')).map(({ name }) => name)).to.deep.equal(['gold']);
    });

    it('keeps the fields of two changes that are made at once', async () => {
      await operator.json('plan', 'set', 'silver', '--quota', '0');
      for (let n = 1; n <= 10; n++) {
        await Promise.all([
          operator.json('plan', 'set', 'silver', '--quota', String(n)),
          operator.json('plan', 'set', 'silver', '--per-minute', String(n)),
        ]);
        const plans = await operator.json<Shape[]>('plan', 'list');
        expect(plans.find(({ name }) => name === 'silver')).to.include({ quota: n, per_minute: n });
      }
      await operator.json('plan', 'remove', 'silver');
    });

    it('a plan that is created without a quota is refused as wrong usage', async () => {
      const { code, out, err } = await operator.run(['plan', 'set', 'new', '--paid', 'yes', '--json']);
      expect({ code, said: JSON.parse(out) }).to.deep.equal({
        code: 2,
        said: { error: '--quota is missing: there is no plan new yet', code: 'usage' },
      });
      expect(err).to.match(/^--quota is missing.*\nUsage: trawl admin plan set NAME \[options\]\n$/);
    });

    it('is not removed while an account has it', async () => {
      await operator.json('plan', 'set', 'held', '--quota', '1');
      await operator.json('account', 'create', 'holder', '--name', 'H', '--plan', 'held');
      expect(await operator.refused('plan', 'remove', 'held')).to.include({ code: 'in_use' });
      await operator.json('account', 'set', 'holder', '--plan', 'none');
      expect(await operator.json('plan', 'remove', 'held')).to.deep.equal({ removed: 'held' });
      expect(await operator.refused('plan', 'remove', 'held')).to.deep.equal({
        error: 'There is no plan held',
        code: 'not_found',
      });
    });
  });

  describe('an account', () => {
    it('has no limits unless they are given, and one slug is created once', async () => {
      const made = await operator.json('account', 'create', 'plain', '--name', 'Plain one');
      expect(made.id).to.match(/^[a-z0-9]{12}$/);
      expect(made.created_at).to.match(iso);
      const { id, created_at, ...rest } = made;
      expect(rest).to.deep.equal({
        slug: 'plain',
        alerts: true,
        name: 'Plain one',
        plan: null,
        stats: false,
        invoice: 'paid',
        suspended: false,
        concurrency: null,
        weight: 1,
        max_open: 10_000,
      });
      expect(await operator.refused('account', 'create', 'plain', '--name', 'x')).to.include({
        code: 'already_exists',
      });
      expect(await operator.refused('account', 'create', 'x', '--name', 'x', '--plan', 'nonsense')).to.include({
        code: 'not_found',
      });
    });

    it('D88: keeps the fields that a change does not name, and is shown with its usage', async () => {
      const options = ['--stats', 'on', '--concurrency', '3', '--weight', '2', '--max-open', '7'];
      await operator.json('account', 'create', 'kept', '--name', 'Kept', ...options);
      const changed = await operator.json('account', 'set', 'kept', '--name', 'Renamed', '--invoice', 'unpaid');
      const wanted = { name: 'Renamed', invoice: 'unpaid', stats: true, concurrency: 3, weight: 2, max_open: 7 };
      expect(changed).to.include(wanted);
      const shown = await operator.json('account', 'show', 'kept');
      expect(shown).to.include({ ...wanted, held: 0 });
      expect(shown.usage).to.include({ remaining: 0, api_key: null });
      expect(await operator.json<Shape[]>('account', 'list')).to.deep.include(changed);
      expect(await operator.refused('account', 'show', 'nobody')).to.deep.equal({
        error: 'There is no account nobody',
        code: 'not_found',
      });
    });

    it('events-6: gets a webhook secret that is shown once and kept sealed', async () => {
      const { id } = await operator.json('account', 'create', 'signed', '--name', 'Signed');
      const line = ['account', 'set', 'signed', '--webhook-secret', 'new', '--json'];
      const refused = await operator.run(line);
      expect(refused).to.include({ code: 1 });
      expect(JSON.parse(refused.out).error).to.match(/^No secret found: TRAWL_SECRET is not set/);
      expect(await secretOf(id)).to.equal('');

      const secret = randomBytes(32);
      const shown = JSON.parse((await operator.run(line, { TRAWL_SECRET: secret.toString('base64') })).out);
      const [, encoded] = /^whsec_([A-Za-z0-9+/=]{44})$/.exec(shown.webhook_secret)!;
      expect(Buffer.from(encoded!, 'base64').length).to.equal(32);
      const sealed = String(await secretOf(id));
      expect(sealed).to.not.contain(encoded);
      expect(makeSeal({ secret }).open('webhook_secret', sealed)).to.equal(shown.webhook_secret);
      expect(await operator.json('account', 'show', 'signed')).to.not.have.property('webhook_secret');

      await operator.json('account', 'set', 'signed', '--webhook-secret', 'none');
      expect(await secretOf(id)).to.equal('');
    });

    it('seals a webhook secret with the secret of the data folder, and is refused one when that is malformed', async () => {
      const { id } = await operator.json('account', 'create', 'filed', '--name', 'Filed');
      const path = join(operator.data, 'secret');
      writeFileSync(path, 'short\n');
      const wrong = await operator.refused('account', 'set', 'filed', '--webhook-secret', 'new');
      expect(wrong.error).to.equal(`The secret in ${path} must be 32 bytes in base64`);
      const secret = randomBytes(32);
      writeFileSync(path, `${secret.toString('base64')}\n`);
      const { webhook_secret } = await operator.json('account', 'set', 'filed', '--webhook-secret', 'new');
      expect(makeSeal({ secret }).open('webhook_secret', String(await secretOf(id)))).to.equal(webhook_secret);
    });

    it('D76: has its open jobs cancelled and their holds released when it is suspended', async () => {
      const caller = await anAccount(operator.store, { credits: 200 });
      const ids: string[] = [];
      for (let n = 0; n < 60; n++) ids.push(await admitted(operator.store, caller));
      const { code, out } = await operator.run(['account', 'set', caller.slug, '--suspended', 'yes']);
      expect(code).to.equal(0);
      expect(out)
        .to.match(/^suspended +yes$/m)
        .and.contain('Open jobs that were cancelled: 60.\n');
      for (const id of ids) {
        expect(await readJob(operator.store, id)).to.include({ status: 'Error', error_code: 'cancelled' });
      }
      const shown = await operator.json('account', 'show', caller.slug);
      expect([shown.suspended, shown.held, shown.usage.remaining]).to.deep.equal([true, 0, 200]);
      expect(await operator.json('account', 'set', caller.slug, '--suspended', 'no')).to.include({ suspended: false });
    });

    it('is removed with its keys once no job is open, and its ledger stays', async () => {
      const caller = await anAccount(operator.store, { credits: 2 });
      const second = await aKey(operator.store, caller.accountId);
      await admitted(operator.store, caller);
      expect(await operator.refused('account', 'remove', caller.slug)).to.include({ code: 'has_open_jobs' });
      await operator.json('account', 'set', caller.slug, '--suspended', 'yes');
      expect(await operator.json('account', 'remove', caller.slug)).to.deep.equal({ removed: caller.slug });
      const left = [keys.key(caller.hash), keys.key(second.hash), keys.keyring(caller.accountId)];
      expect(await operator.store.connection.send(['EXISTS', ...left])).to.equal(0);
      expect(await operator.refused('account', 'show', caller.slug)).to.include({ code: 'not_found' });
      expect((await operator.json<Shape[]>('ledger', 'show', caller.slug)).length).to.equal(1);
      expect(await operator.json('ledger', 'verify', caller.slug)).to.include({ ok: true, entries: 1 });
      await operator.json('account', 'create', caller.slug, '--name', 'Another');
      expect(await operator.json<Shape[]>('ledger', 'show', caller.slug)).to.deep.equal([]);
    });

    it('is still verified and listed by its ledger after its removal, although later accounts of its slug are removed too', async () => {
      const made = async (credits: string): Promise<string> => {
        await operator.json('account', 'create', 'again', '--name', 'Again');
        await operator.json('credits', 'add', 'again', credits);
        const id = await findAccount(operator.store, 'again');
        await operator.json('account', 'remove', 'again');
        return id;
      };
      const before = await operator.json('ledger', 'verify');
      const ids = [await made('1'), await made('2'), await made('3')];
      const shown = await operator.json<Shape[]>('ledger', 'show', 'again');
      expect(shown.map(({ amount }) => amount)).to.deep.equal([3]);
      expect(await operator.json('ledger', 'verify', 'again')).to.include({ accounts: 3, entries: 3, ok: true });
      const all = await operator.json('ledger', 'verify');
      expect(all).to.include({ accounts: Number(before.accounts) + 3, ok: true });
      expect((await listLedgerAccounts(operator.store)).map(([, id]) => id)).to.include.members(ids);
    });
  });

  describe('a key', () => {
    before(() => operator.json('account', 'create', 'owner', '--name', 'Owner'));

    it('key-alias key-secret auth-7: is shown once, when it is created', async () => {
      const options = [
        '--category',
        'production',
        '--expires',
        '2032-02-29',
        '--quota-total',
        '100',
        '--quota-daily',
        '0',
      ];
      const made = await operator.json('key', 'create', 'owner', '--alias', 'k', ...options);
      expect(made.alias).to.equal('k');
      expect(readKey(made.key)).to.include({ keyId: made.id });
      const [listed] = await operator.json<[Shape]>('key', 'list', 'owner');
      expect(JSON.stringify(listed)).to.not.contain(made.key.slice(-20));
      expect(listed.created_at).to.match(iso);
      const { created_at, ...rest } = listed;
      expect(rest).to.deep.equal({
        id: made.id,
        alias: 'k',
        category: 'production',
        active: true,
        expires: '2032-02-29T23:59:59.999Z',
        quotas: { total: 100, daily: 0, weekly: null, monthly: null },
        last_used_at: null,
      });
      expect(await operator.refused('key', 'create', 'owner', '--alias', 'k')).to.include({ code: 'already_exists' });
      expect(await operator.refused('key', 'create', 'nobody', '--alias', 'k')).to.include({ code: 'not_found' });
    });

    it('keeps the fields that a change does not name', async () => {
      const before = await operator.json('key', 'set', 'owner', 'k', '--quota-daily', '7', '--category', '');
      expect(before).to.deep.include({ category: '', quotas: { total: 100, daily: 7, weekly: null, monthly: null } });
      const after = await operator.json('key', 'set', 'owner', 'k', '--active', 'no', '--expires', 'never');
      expect(after).to.deep.equal({ ...before, active: false, expires: null });
      expect(await operator.json('key', 'set', 'owner', 'k', '--quota-total', 'none')).to.deep.include({
        quotas: { total: null, daily: 7, weekly: null, monthly: null },
      });
      expect(await operator.refused('key', 'set', 'owner', 'other', '--active', 'no')).to.include({
        code: 'not_found',
      });
    });

    it('key-delete-unused key-delete-used D40: is deleted only when it was never used', async () => {
      const { key } = await operator.json('key', 'create', 'owner', '--alias', 'used');
      await authorize(operator.store, readKey(key)!);
      expect(await operator.refused('key', 'delete', 'owner', 'used')).to.include({ code: 'key_has_history' });
      const [, used] = await operator.json<[Shape, Shape]>('key', 'list', 'owner');
      expect(used.last_used_at).to.match(iso);
      expect(await operator.json('key', 'delete', 'owner', 'k')).to.deep.equal({ deleted: true });
      expect((await operator.json<Shape[]>('key', 'list', 'owner')).map(({ alias }) => alias)).to.deep.equal(['used']);
    });
  });
});
