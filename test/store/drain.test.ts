import { expect } from 'chai';
import { admitBatch } from '../../src/store/access/admit-batch.ts';
import { beginDrain, endDrain, readDrain, readOpenWork } from '../../src/store/access/drain.ts';
import { keys } from '../../src/store/keys.ts';
import { aBatch } from '../support/batch-scenarios.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { admitted, anAccount, ask, type TestStore } from '../support/record.ts';
import { until } from '../support/until.ts';

const isDraining = (answer: object) => 'refused' in answer && answer.refused === 'draining';

describe('a drain of the record', () => {
  let store: TestStore;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });

  it('refuses whatever is asked for after it began, and answers what was admitted before', async () => {
    const caller = await anAccount(store, { credits: 900, max_open: 900 });
    const repeat = { key: 'k', request: 'a' };
    const first = await admitted(store, caller, { repeat });
    const fifty = () => Array.from({ length: 50 }, () => ask(store, caller));
    const early = fifty();
    const late = beginDrain(store).then(() => Promise.all(fifty()));
    const between = fifty();
    expect(await late).to.satisfy((answers: object[]) => answers.every(isDraining));
    const letIn = (await Promise.all([...early, ...between])).filter((answer) => !isDraining(answer));
    expect(await readOpenWork(store)).to.deep.include({ queued: 1 + letIn.length, running: 0 });
    expect(await ask(store, caller, { repeat })).to.deep.include({ repeated: first });
    expect(await ask(store, caller, { id: first })).to.deep.include({ admitted: first });
    expect(await ask(store, caller, { work: { holdMs: 1000 } })).to.satisfy(isDraining);
    expect(await admitBatch(store, caller, aBatch(2))).to.satisfy(isDraining);
    expect(await ask(store, await anAccount(store))).to.deep.include({ refused: 'payment_required' });
    await endDrain(store);
    await admitted(store, caller);
  });

  it('with an end ends by itself, unless an operator wants it to last', async () => {
    const ttl = () => store.connection.send(['PTTL', keys.drain]);
    expect(await beginDrain(store, 60_000)).to.equal(true);
    expect(Number(await ttl())).to.be.within(1, 60_000);
    expect(await beginDrain(store)).to.equal(false);
    expect(await ttl()).to.equal(-1);
    expect(await beginDrain(store, 60_000)).to.equal(false);
    expect(await ttl()).to.equal(-1);
    await endDrain(store);
    await beginDrain(store, 1);
    await until(async () => (await readDrain(store)) === null, 5, 'the drain to end');
  });
});
