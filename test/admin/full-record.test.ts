import { expect } from 'chai';
import { type Operator, startOperator } from '../support/operator.ts';
import { admitted, anAccount } from '../support/record.ts';

describe('an operator beside a Redis whose memory is full', () => {
  let operator: Operator;
  let caller: Awaited<ReturnType<typeof anAccount>>;
  before(async () => {
    operator = await startOperator();
    await operator.json('account', 'open', 'films');
    await operator.json('plan', 'set', 'p', '--quota', '5');
    caller = await anAccount(operator.store, { credits: 2 });
    await operator.store.connection.send(['CONFIG', 'SET', 'maxmemory', '1']);
  });
  after(() => operator.stop());

  it('suspends and limits the account that fills it, slows its plan, and disables its automatic top-up', async () => {
    expect((await operator.json('plan', 'set', 'p', '--per-minute', '1')).per_minute).to.equal(1);
    expect((await operator.json('topup', 'set', 'films', '--enabled', 'no')).enabled).to.equal(false);
    expect((await operator.json('account', 'set', 'films', '--max-open', '5')).max_open).to.equal(5);
    expect((await operator.json('account', 'set', 'films', '--suspended', 'yes')).suspended).to.equal(true);
    expect((await operator.json('account', 'set', 'films', '--suspended', 'no')).suspended).to.equal(false);
    expect((await operator.json('ledger', 'verify')).ok).to.equal(true);
  });

  it('gets no new account and sees no job admitted, because both take memory', async () => {
    expect(await operator.refused('account', 'open', 'more')).to.include({ code: 'unavailable' });
    expect(await admitted(operator.store, caller).catch((error) => error)).to.include({ code: 'unavailable' });
  });
});
