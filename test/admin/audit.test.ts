import { hostname, userInfo } from 'node:os';
import { expect } from 'chai';
import { commands } from '../../src/admin/commands.ts';
import type { AuditAction } from '../../src/model/audit.ts';
import { keys } from '../../src/store/keys.ts';
import { type Operator, type Shape, startOperator } from '../support/operator.ts';
import { aDownload, admitted, anAccount } from '../support/record.ts';

/** Commands that change nothing, or only note that a copy was taken. */
const reading = [
  ...['plan list', 'account list', 'account show', 'key list', 'user list', 'topup show', 'offer list', 'ledger show'],
  ...['ledger verify', 'log show', 'job show', 'job explain', 'webhook list', 'block list', 'drain status', 'audit'],
  ...['record backup', 'record status', 'cookies check'],
];
const actionOf: Readonly<Record<string, AuditAction>> = {
  ...{ 'plan set': 'plan.set', 'plan remove': 'plan.remove', 'offer set': 'offer.set', 'offer remove': 'offer.remove' },
  ...{
    'account create': 'account.create',
    'account open': 'account.create',
    'account set': 'account.change',
    'account remove': 'account.remove',
  },
  ...{ 'key create': 'key.create', 'key set': 'key.change', 'key delete': 'key.delete' },
  ...{ 'user create': 'person.invite', 'user remove': 'person.remove', 'block clear': 'block.clear' },
  ...{ 'pack add': 'pack.add', 'credits add': 'credits.add', 'topup set': 'topup.change' },
  ...{
    'job cancel': 'job.cancel',
    'webhook replay': 'webhook.replay',
    'drain on': 'drain.on',
    'drain off': 'drain.off',
  },
  ...{ 'secret reseal': 'secret.reseal', 'record restore': 'record.restore', 'record seal': 'record.seal' },
};

describe('admin audit', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator();
  });
  after(() => operator.stop());

  const shown = (changes: readonly Shape[]) => changes.map(({ action, account, target }) => [action, account, target]);

  it('shows what the command line changed, by whom and from where, of one account or of all', async () => {
    expect(await operator.json<Shape[]>('audit')).to.deep.equal([]);
    await operator.json('plan', 'set', 'gold', '--quota', '5');
    await operator.json('account', 'create', 'film', '--name', 'Film');
    await operator.json('account', 'create', 'other', '--name', 'Other');
    const { key } = await operator.json('key', 'create', 'film', '--alias', 'main', '--quota-daily', '7');
    const line = ['account', 'set', 'film', '--webhook-secret', 'new', '--weight', '2', '--json'];
    const answer = await operator.run(line, { TRAWL_SECRET: Buffer.alloc(32, 7).toString('base64') });
    const { webhook_secret } = JSON.parse(answer.out) as { webhook_secret: string };
    await operator.refused('key', 'delete', 'film', 'unknown');
    const ofFilm = [
      ['account.change', 'film', ''],
      ['key.create', 'film', 'main'],
      ['account.create', 'film', 'film'],
    ];
    const changes = await operator.json<Shape[]>('audit', 'film');
    expect(shown(changes)).to.deep.equal(ofFilm);
    const own = { who: userInfo().username, via: 'command', from: hostname() };
    for (const change of changes) expect(change).to.include(own);
    expect(changes[0]?.change).to.deep.equal({ weight: 2, webhook_secret: 'new' });
    expect(changes[1]?.change).to.deep.equal({ quotas: { daily: 7 } });
    for (const secret of [key, webhook_secret]) expect(JSON.stringify(changes)).not.to.include(secret);
    const all = shown(await operator.json<Shape[]>('audit', '--limit', '4'));
    expect(all).to.deep.equal([...ofFilm.slice(0, 2), ['account.create', 'other', 'other'], ofFilm[2]]);
    const { out } = await operator.run(['audit', 'film']);
    expect(out).to.match(/account\.change .*\{"weight":2,"webhook_secret":"new"\}/);
  });

  it('has an action for every command that changes something', () => {
    const changing = commands.map(({ name }) => name).filter((name) => !reading.includes(name));
    expect(Object.keys(actionOf).toSorted()).to.deep.equal(changing.toSorted());
  });

  it('has an entry of each operation on jobs, webhooks, drains and secrets', async () => {
    const { store } = operator;
    const webhook = { url: 'https://a.example/hook', receiver: 'a.example/x', authorization: 'sealed' };
    const caller = await anAccount(store, { credits: 5 });
    const job = await admitted(store, caller, { work: { ...aDownload, webhook } });
    await operator.json('job', 'cancel', job);
    await operator.json('job', 'cancel', job);
    await operator.refused('webhook', 'replay', job);
    await store.connection.send(['HSET', keys.webhook(job), 'state', 'failed']);
    await operator.json('webhook', 'replay', job);
    await operator.json('drain', 'on');
    await operator.json('drain', 'on');
    await operator.json('drain', 'off');
    await operator.run(['secret', 'reseal'], { TRAWL_SECRET: Buffer.alloc(32, 7).toString('base64') });
    const names = ['secret reseal', 'drain off', 'drain on', 'webhook replay', 'job cancel'];
    const entries = await operator.json<Shape[]>('audit', '--limit', String(names.length));
    expect(entries.map(({ action }) => action)).to.deep.equal(names.map((name) => actionOf[name]));
    expect(entries.slice(-2).map(({ target }) => target)).to.deep.equal([job, job]);
    const [replay, cancel] = entries.slice(-2).map(({ account }) => account);
    expect(replay).to.equal(cancel).and.not.equal('');
  });

  it('shows the changes of an account that was removed', async () => {
    await operator.json('account', 'create', 'gone', '--name', 'Gone');
    await operator.json('account', 'remove', 'gone');
    const [last] = await operator.json<Shape[]>('audit', 'gone');
    expect(last).to.include({ action: 'account.remove', account: 'gone', target: 'gone' });
  });

  it('names who asked for it behind sudo', async () => {
    await operator.run(['plan', 'set', 'silver', '--quota', '1'], { SUDO_USER: 'grace' });
    expect((await operator.json<Shape[]>('audit', '--limit', '1'))[0]).to.include({ who: 'grace', target: 'silver' });
  });

  it('refuses an account that is not known', async () => {
    expect(await operator.refused('audit', 'nobody')).to.include({ code: 'not_found' });
  });
});
