import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { archiveDays } from '../../src/archive/archive-days.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import type { Usage } from '../../src/model/money.ts';
import { openFolder } from '../../src/objects/folder-store.ts';
import { countAuthFailure } from '../../src/store/access/count-auth-failure.ts';
import { keys } from '../../src/store/keys.ts';
import { readLedger } from '../../src/store/log/read-ledger.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { openRequestLog } from '../../src/store/log/write-lines.ts';
import { freeLine } from '../support/free-line.ts';
import { endJob } from '../support/job-steps.ts';
import { type Operator, type Shape, startOperator } from '../support/operator.ts';
import { admitted, aKey, anAccount } from '../support/record.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe('commands for money, logs and blocks', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator();
  });
  after(() => operator.stop());

  it('pack add shows the pack as to callers, bought now unless a date is given', async () => {
    const { slug } = await anAccount(operator.store);
    const pack = ['pack', 'add', slug, '--title', 'Starter', '--total', '5'];
    const { id, ...rest } = await operator.json(...pack, '--purchased-at', '2026-03-04');
    expect(id).to.match(/^[0-9a-f]{24}$/);
    expect(rest).to.deep.equal({
      title: 'Starter',
      purchased_at: '2026-03-04T00:00:00.000Z',
      total: 5,
      used: 0,
      remaining: 5,
      percent_used: 0,
      exhausted: false,
    });
    const before = Date.now();
    const { purchased_at } = await operator.json(...pack);
    expect(Date.parse(String(purchased_at))).to.be.within(before, Date.now());
    expect((await operator.json('account', 'show', slug)).usage).to.include({ remaining: 10 });
    expect(await operator.refused('pack', 'add', 'nobody', '--title', 't', '--total', '1')).to.include({
      code: 'not_found',
    });
  });

  it('pack add with an id adds one pack, however often it is repeated, and refuses another pack', async () => {
    const { slug } = await anAccount(operator.store);
    const pack = ['pack', 'add', slug, '--title', 'Starter', '--total', '5', '--id', 'invoice 17'];
    const added = await operator.json(...pack);
    expect(await operator.json(...pack)).to.deep.equal(added);
    expect(await operator.refused(...pack.with(4, 'Large'))).to.deep.equal({
      error: 'Another pack was added with the id invoice 17',
      code: 'already_exists',
    });
    expect(await operator.refused(...pack.with(6, '6'))).to.include({ code: 'already_exists' });
    expect(await operator.refused(...pack, '--purchased-at', '2026-03-04')).to.include({ code: 'already_exists' });
    expect((await operator.json(...pack.with(8, 'invoice 18'))).id).not.to.equal(added.id);
    expect((await operator.json('account', 'show', slug)).usage).to.include({ remaining: 10 });
    expect(await operator.json('ledger', 'verify', slug)).to.include({ ok: true });
  });

  it('packs-order: packs that were bought at the same time are drawn in the order in which they were added', async () => {
    const { slug } = await anAccount(operator.store);
    const titles = ['a', 'b', 'c', 'd', 'e'];
    for (const title of titles) {
      const begun = Date.now();
      await operator.json('pack', 'add', slug, '--title', title, '--total', '1', '--purchased-at', '2026-03-04');
      await until(() => Date.now() > begun, 1, 'the next millisecond');
    }
    const { usage } = await operator.json<{ usage: Usage }>('account', 'show', slug);
    expect(usage.packs?.items.map(({ title }) => title)).to.deep.equal(titles);
  });

  it('D57: credits add adds to the credits of the account', async () => {
    const { slug } = await anAccount(operator.store, { credits: 1 });
    const given = await operator.json('credits', 'add', slug, '4', '--reason', 'a gift');
    expect((await operator.json('ledger', 'show', slug))[0]).to.include({ reason: 'a gift' });
    expect(given).to.deep.equal({ given: 5, consumed: 0, remaining: 5 });
    expect(await operator.refused('credits', 'add', 'nobody', '4')).to.include({ code: 'not_found' });
  });

  it('credits add with an id adds once, however often it is repeated, and refuses another number', async () => {
    const { slug } = await anAccount(operator.store);
    const add = ['credits', 'add', slug, '4', '--id', 'invoice 17'];
    for (let n = 0; n < 3; n++) {
      expect(await operator.json(...add)).to.deep.equal({ given: 4, consumed: 0, remaining: 4 });
    }
    expect(await operator.refused('credits', 'add', slug, '5', '--id', 'invoice 17')).to.deep.equal({
      error: 'Another number of credits was added with the id invoice 17',
      code: 'already_exists',
    });
    expect(await operator.json('credits', 'add', slug, '4', '--id', 'invoice 18')).to.include({ given: 8 });
    expect(await operator.json<Shape[]>('ledger', 'show', slug)).to.have.length(2);
    expect(await operator.json('ledger', 'verify', slug)).to.include({ ok: true });
  });

  it('credits add refuses an empty id, which would add again at each repetition', async () => {
    const { slug } = await anAccount(operator.store);
    for (const id of ['', ' ']) {
      const { code, err } = await operator.run(['credits', 'add', slug, '4', '--id', id]);
      expect({ code, err }).to.deep.equal({
        code: 2,
        err: '--id must be one line of 1 to 200 characters\nUsage: trawl admin credits add SLUG N [options]\n',
      });
    }
    expect(await operator.json<Shape[]>('ledger', 'show', slug)).to.deep.equal([]);
  });

  it('D81: ledger show lists grants and charges, newest first', async () => {
    const caller = await anAccount(operator.store, { credits: 4 });
    const id = await admitted(operator.store, caller);
    await endJob(operator.store, id);
    const entries = await operator.json<Shape[]>('ledger', 'show', caller.slug);
    expect(entries.map(({ kind, balance, amount, job, pack }) => [kind, balance, amount, job, pack])).to.deep.equal([
      ['charge', 'credits', 1, id, null],
      ['grant', 'credits', 4, null, null],
    ]);
    for (const { at } of entries) expect(at).to.match(iso);
    const [last, ...more] = await operator.json<Shape[]>('ledger', 'show', caller.slug, '--limit', '1');
    expect([last, more]).to.deep.equal([entries[0], []]);
    expect(await operator.refused('ledger', 'show', 'nobody')).to.include({ code: 'not_found' });
  });

  it('ledger verify checks one account or all, and exits with 1 for a difference', async () => {
    const { slug, accountId } = await anAccount(operator.store, { credits: 3 });
    expect(await operator.json('ledger', 'verify', slug)).to.deep.equal({
      accounts: 1,
      entries: 1,
      ok: true,
      problems: [],
    });
    const all = await operator.json('ledger', 'verify');
    expect(all).to.deep.include({ ok: true, problems: [] });
    expect(all.accounts).to.be.above(1);

    const add = (amount: number) =>
      operator.store.connection.send(['HINCRBY', keys.account(accountId), 'credits_given', String(amount)]);
    await add(2);
    const { code, out } = await operator.run(['ledger', 'verify', '--json']);
    expect({ code, seen: JSON.parse(out) }).to.deep.equal({
      code: 1,
      seen: {
        ...all,
        ok: false,
        problems: [`${slug}: The sum of credits given is 3 in the ledger and 5 in the balances`],
      },
    });
    const shown = await operator.run(['ledger', 'verify', slug]);
    expect(shown.out)
      .to.match(/^1 account with 1 entries: 1 problems\.\n/)
      .and.contain(`${slug}: The sum`);
    await add(-2);
    expect(await operator.refused('ledger', 'verify', 'nobody')).to.include({ code: 'not_found' });
  });

  it('log show, ledger show and ledger verify read archived days too', async () => {
    const { store, data } = operator;
    const { slug, accountId, keyId } = await anAccount(store, { credits: 3 });
    const lines = openRequestLog(store, 100, aLog().log);
    const line = { ...freeLine, duration_ms: 1.5 };
    for (let n = 0; n < 3; n++) lines.add({ accountId, keyId }, { ...line, at: n });
    await lines.close();
    const asked = [
      ['log', 'show', slug],
      ['ledger', 'show', slug],
      ['ledger', 'verify', slug],
    ] as const;
    const answers = () => Promise.all(asked.map((line) => operator.json(...line)));
    const before = await answers();
    const secret = randomBytes(32);
    await writeFile(join(data, 'secret'), secret.toString('base64'));
    const seal = makeSeal({ secret });
    const now = () => store.clock.now() + 100 * 86_400_000;
    const objects = await openFolder({ folder: join(data, 'objects'), seal, now });
    const later = { ...store, clock: { now, offset: () => 100 * 86_400_000 } };
    const parts = { store: later, objects, metrics: makeMetrics(), log: aLog().log };
    await archiveDays({ ...parts, lifetimes: { job: 0 }, goOn: () => true });
    expect(await readLines(store, accountId, 9)).to.deep.equal([]);
    expect(await readLedger(store, accountId, 9)).to.deep.equal([]);
    expect(await answers()).to.deep.equal(before);
    const two = await operator.json<Shape[]>('log', 'show', slug, '--limit', '2');
    expect(two.map(({ at }) => Date.parse(String(at)))).to.deep.equal([2, 1]);
  });

  it('ledger verify shows its progress on a terminal alone', async () => {
    const watched = await operator.run(['ledger', 'verify'], {}, true);
    expect(watched.err.split('\r\x1b[K')).to.satisfy(
      ([before, progress, after]: string[]) =>
        before === '' && /^\d+ of \d+ accounts are verified$/.test(String(progress)) && after === '',
    );
    expect((await operator.run(['ledger', 'verify'])).err).to.equal('');
  });

  it('log-entry: log show lists the newest lines first, narrowed by key and limit', async () => {
    const caller = await anAccount(operator.store);
    const other = await aKey(operator.store, caller.accountId);
    const lines = openRequestLog(operator.store, 100, aLog().log);
    const line = { ...freeLine, duration_ms: 1.5 };
    for (let n = 0; n < 3; n++) lines.add(caller, { ...line, at: 1000 + n });
    lines.add(other, { ...line, at: 5000 });
    await lines.close();
    const aliases = (await operator.json<Shape[]>('key', 'list', caller.slug)).map(({ id, alias }) => [id, alias]);
    const alias = String(new Map(aliases as [string, string][]).get(other.keyId));

    const shown = await operator.json<Shape[]>('log', 'show', caller.slug);
    expect(shown[0]).to.deep.equal({ ...line, at: '1970-01-01T00:00:05.000Z', key: alias });
    expect(shown.map(({ at }) => Date.parse(String(at)))).to.deep.equal([5000, 1002, 1001, 1000]);
    expect(await operator.json<Shape[]>('log', 'show', caller.slug, '--key', alias)).to.deep.equal([shown[0]]);
    const two = await operator.json<Shape[]>('log', 'show', caller.slug, '--limit', '2');
    expect(two).to.deep.equal(shown.slice(0, 2));
    expect(await operator.refused('log', 'show', caller.slug, '--key', 'nobody')).to.include({ code: 'not_found' });
  });

  it('D38: block clear ends the block of the /64 of an IPv6 address, however the address is written', async () => {
    const rule = { maxFailures: 1, windowMs: 60_000, blockMs: 60_000 };
    const blocked = '2001:db8:0:0::/64';
    const written = ['2001:db8::17', '2001:DB8:0000::', '2001:db8::/64', blocked];
    for (const one of written) {
      await countAuthFailure(operator.store, blocked, rule);
      expect(await operator.json('block', 'clear', one), one).to.deep.equal({ cleared: blocked });
    }
    await countAuthFailure(operator.store, '192.0.2.7', rule);
    expect(await operator.json('block', 'clear', '::ffff:192.0.2.7')).to.deep.equal({ cleared: '192.0.2.7' });
    expect(await operator.json('block', 'list')).to.deep.equal([]);
  });

  it('block list and block clear show and remove blocked addresses', async () => {
    const rule = { maxFailures: 1, windowMs: 60_000, blockMs: 60_000 };
    const { until } = await countAuthFailure(operator.store, '192.0.2.7', rule);
    expect(await operator.json('block', 'list')).to.deep.equal([
      { ip: '192.0.2.7', until: new Date(until!).toISOString() },
    ]);
    expect(await operator.json('block', 'clear', '192.0.2.7')).to.deep.equal({ cleared: '192.0.2.7' });
    expect(await operator.json('block', 'list')).to.deep.equal([]);
    expect(await operator.refused('block', 'clear', '192.0.2.7')).to.include({ code: 'not_found' });
  });

  it('without --json the commands print tables and sentences', async () => {
    const { slug } = await anAccount(operator.store, { credits: 12_000 });
    const shown = async (...line: string[]) => (await operator.run(line)).out;
    expect(await shown('ledger', 'show', slug)).to.match(
      /^at \(UTC\) +kind +balance +amount +job +pack +reason\n[\d: -]{19} {2}grant {2}credits {2}12,000 +- +- +-\n$/,
    );
    expect(await shown('block', 'list')).to.equal('No address is blocked.\n');
    expect(await shown('key', 'create', slug, '--alias', 'k')).to.match(
      /^id +\w+\nalias +k\nkey +trawl_\w+\nThe key cannot be shown again: only its hash is kept\.\n$/,
    );
    expect(await shown('account', 'show', slug)).to.match(/^remaining +12,000$/m);
    expect(await operator.run(['account', 'show', 'nobody'])).to.deep.equal({
      code: 1,
      out: '',
      err: 'There is no account nobody\n',
    });
  });
});
