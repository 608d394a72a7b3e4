import { expect } from 'chai';
import { checkConnection } from '../../src/admin/check-record.ts';
import { keys } from '../../src/store/keys.ts';
import { listOffers, setOffer } from '../../src/store/money/offers.ts';
import { type Operator, type Shape, startOperator } from '../support/operator.ts';
import { anAccount } from '../support/record.ts';

describe('plans and offers whose record is damaged', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator();
  });
  after(() => operator.stop());

  const damage = (key: string, name: string) => operator.store.connection.send(['HSET', key, name, '{"quota":']);
  const found = async () => {
    const rules = { durability: 'relaxed', redisMemory: null, trustedProxies: [] } as const;
    const findings = await checkConnection(operator.store.connection, rules);
    return findings.filter(({ about }) => about === 'plans').map(({ level, text }) => `${level} ${text}`);
  };

  it('are named by the doctor until they are written anew, by one command each', async () => {
    const { slug, plan } = await anAccount(operator.store, { quota: 5 });
    const terms = { title: 'Pack', credits: 10, price_cents: 500, currency: 'eur' };
    await setOffer(operator.store, { name: 'small', ...terms });
    expect(await found()).to.deep.equal([]);
    await damage(keys.plans, plan);
    await operator.store.connection.send(['HSET', keys.offers, 'small', '{"name":"small","title":"Pack"}']);
    expect(await listOffers(operator.store)).to.deep.equal([]);
    expect((await found()).join('\n')).to.match(new RegExp(`^problem .*plan ${plan}, offer small\\.`));
    expect((await operator.refused('plan', 'list')).error).to.include(`plan ${plan} is damaged`);
    const whole = ['--quota', '7', '--per-second', '5', '--per-minute', 'none', '--paid', 'yes'];
    for (const n of [0, 2, 4, 6]) {
      const { err } = await operator.run(['plan', 'set', plan, ...whole.toSpliced(n, 2)]);
      expect(err).to.include(`${whole[n]} must be given: the record of the plan ${plan} is damaged`);
    }
    expect((await operator.json('account', 'show', slug)).usage).to.include({ remaining: 5 });

    expect(await operator.json('plan', 'set', plan, ...whole)).to.include({ name: plan, quota: 7, paid: true });
    await setOffer(operator.store, { name: 'small', ...terms });
    expect(await found()).to.deep.equal([]);
    expect((await operator.json<Shape[]>('plan', 'list')).map(({ name }) => name)).to.deep.equal([plan]);
    expect((await operator.json('account', 'show', slug)).usage).to.include({ remaining: 7 });
  });
});
