import { hostname, userInfo } from 'node:os';
import { expect } from 'chai';
import { type Operator, type Shape, startOperator } from '../support/operator.ts';

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
