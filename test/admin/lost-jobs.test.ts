import { expect } from 'chai';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { mendJob } from '../../src/store/jobs/mend-job.ts';
import { noteStoring } from '../../src/store/jobs/note-storing.ts';
import { requeueDelayed } from '../../src/store/jobs/requeue-delayed.ts';
import { retryJob } from '../../src/store/jobs/retry-job.ts';
import { keys } from '../../src/store/keys.ts';
import { type Operator, startOperator } from '../support/operator.ts';
import { admitted, anAccount, aRunningJob, holder, theJob } from '../support/record.ts';

describe('jobs whose record is broken or lost', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator();
  });
  after(() => operator.stop());

  const lost: Readonly<Record<string, readonly string[]>> = {
    'whose created_at is no number': ['HSET', 'created_at', '17x'],
    'whose created_at is too far away': ['HSET', 'created_at', '9999999999999999'],
    'that has no created_at': ['HDEL', 'created_at'],
    'whose attempt is no number': ['HSET', 'attempt', '1x'],
    'whose attempt is a fraction': ['HSET', 'attempt', '1.5'],
    'whose attempt is another one': ['HSET', 'attempt', '9'],
    'whose failures are below zero': ['HSET', 'failures', '-3'],
    'whose started_at is no number': ['HSET', 'started_at', '17x'],
    'whose status is none': ['HSET', 'status', 'Runn'],
    'that has no status': ['HDEL', 'status'],
    'whose revision is no number': ['HSET', 'revision', 'x'],
    'whose account is none': ['HSET', 'account', 'x'],
    'that has no id': ['HDEL', 'id'],
    'whose record is lost': ['DEL'],
  };
  for (const [what, [verb = '', ...fields]] of Object.entries(lost)) {
    for (const state of ['waiting', 'running']) {
      it(`a ${state} job ${what} is cancelled by one command, which gives slot and credit back`, async () => {
        const one = await anAccount(operator.store, { credits: 10 });
        const id =
          state === 'running' ? (await aRunningJob(operator.store, one)).id : await admitted(operator.store, one);
        await operator.store.connection.send([verb, keys.job(id), ...fields]);
        const cancelled = await operator.json('job', 'cancel', id);
        expect(cancelled).to.include({ id, status: 'Error', error_code: 'cancelled', account: one.slug });
        expect((await operator.json('account', 'show', one.slug)).usage).to.include({ remaining: 10, held: 0 });
        const slots = await operator.store.connection.read(['HGET', keys.account(one.accountId), 'running']);
        const open = await operator.store.connection.read(['ZSCORE', keys.openWork, id]);
        expect([slots, open]).to.deep.equal(['0', null]);
        expect(await operator.json('ledger', 'verify', one.slug)).to.include({ ok: true });
      });
    }
  }

  it('a waiting job whose attempt became another number gives back no slot when its caller cancels it', async () => {
    const { store } = operator;
    const one = await anAccount(store, { credits: 10 });
    await aRunningJob(store, one);
    const id = await admitted(store, one);
    await store.connection.send(['HSET', keys.job(id), 'attempt', '1']);
    await cancelJob(store, await theJob(store, id));
    expect(await store.connection.read(['HGET', keys.account(one.accountId), 'running'])).to.equal('1');
    expect(await store.connection.read(['ZCARD', keys.queue(one.accountId)])).to.equal(0);
  });

  it('a job that has just begun gives its slot back, also where the open work has lost it', async () => {
    const { store } = operator;
    const one = await anAccount(store, { credits: 10 });
    const { id } = await aRunningJob(store, one);
    await store.connection.send(['HSET', keys.job(id), 'stage', '']);
    await store.connection.send(['ZREM', keys.openWork, id]);
    await cancelJob(store, await theJob(store, id));
    expect(await store.connection.read(['HGET', keys.account(one.accountId), 'running'])).to.equal('0');
  });

  it('a job whose record is whole is not changed by the script that mends others, whether it waits, runs or is being stored', async () => {
    const { store } = operator;
    const one = await anAccount(store, { credits: 10 });
    const stored = await aRunningJob(store, one);
    await noteStoring(store, holder, stored, { metadata: {}, delivered: { key: 'film' } });
    for (const id of [await admitted(store, one), (await aRunningJob(store, one)).id, stored.id]) {
      const before = await store.connection.read(['HGETALL', keys.job(id)]);
      await mendJob(store, id);
      expect(await store.connection.read(['HGETALL', keys.job(id)])).to.deep.equal(before);
    }
  });

  for (const field of ['account', 'created_at']) {
    it(`a job whose ${field} cannot be read is cancelled with the others when its account is suspended`, async () => {
      const one = await anAccount(operator.store, { credits: 10 });
      const [damaged] = [await admitted(operator.store, one), await admitted(operator.store, one)];
      await operator.store.connection.send(['HSET', keys.job(damaged), field, 'x']);
      await operator.json('account', 'set', one.slug, '--suspended', 'yes');
      expect((await operator.json('account', 'show', one.slug)).usage).to.include({ remaining: 10, held: 0 });
    });
  }

  for (const field of ['account', 'created_at']) {
    it(`a delayed job whose ${field} cannot be read goes on, and keeps no other from another attempt`, async () => {
      const { store } = operator;
      const one = await anAccount(store, { credits: 10 });
      const ids: string[] = [];
      for (const delayMs of [1_000, 2_000]) {
        const job = await aRunningJob(store, one);
        const notBefore = store.clock.now() + delayMs;
        await retryJob(store, holder, job, { counts: 'failure', code: 'internal_error', notBefore });
        ids.push(job.id);
      }
      await store.connection.send(['HSET', keys.job(ids[0]!), field, '17x']);
      store.advance(5_000);
      expect(await requeueDelayed(store)).to.equal(2);
      expect(await store.connection.read(['ZRANGE', keys.queue(one.accountId), '0', '-1'])).to.deep.equal(ids);
      for (const id of ids) await operator.json('job', 'cancel', id);
      expect(await operator.json('ledger', 'verify', one.slug)).to.include({ ok: true });
    });
  }
});
