import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { makeAccountTurns, type TakeTurn } from '../../src/api/account-turns.ts';
import type { Refusal } from '../../src/base/errors.ts';
import { cancelBatch } from '../../src/store/batches/cancel-batch.ts';
import { readBatch } from '../../src/store/batches/read-batch.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { keys } from '../../src/store/keys.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { film } from '../support/calls.ts';
import { until } from '../support/until.ts';

const maxReading = 4;
const maxWaiting = 500;

/** A call of an account whose caller stays. */
function by(accountId: string): Parameters<TakeTurn>[0] {
  const socket = Object.assign(new EventEmitter(), { writable: true, writableLength: 0, write: () => true });
  const res = Object.assign(new EventEmitter(), { req: { socket, httpVersion: '1.1' } });
  return { key: { accountId, keyId: '', hash: '' }, res: res as unknown as ServerResponse };
}

describe('the works of an account', () => {
  it(`are begun ${maxReading} at once, the others in their order, and beside those of other accounts`, async () => {
    const takeTurn = makeAccountTurns();
    const begun: string[] = [];
    const ends: (() => void)[] = [];
    const ask = (account: string, name: string) =>
      takeTurn(by(account), () => {
        begun.push(name);
        return new Promise<void>((resolve) => ends.push(resolve));
      });
    const all = ['1', '2', '3', '4', '5', '6'].map((name) => ask('a', name));
    all.push(ask('b', 'other'));
    expect(begun).to.deep.equal(['1', '2', '3', '4', 'other']);
    for (const name of ['5', '6']) {
      ends.shift()?.();
      await until(() => begun.includes(name), 10, 'the next one is begun');
      expect(begun.at(-1)).to.equal(name);
    }
    for (const end of ends) end();
    await Promise.all(all);
  });

  it('go on after one that fails', async () => {
    const takeTurn = makeAccountTurns();
    const fails = Array.from({ length: 20 }, () => takeTurn(by('a'), () => Promise.reject(new Error('no'))));
    const settled = await Promise.allSettled(fails);
    expect(settled.filter(({ status }) => status === 'rejected')).to.have.length(20);
    expect(await takeTurn(by('a'), async () => 'yes')).to.equal('yes');
  });

  it('are not begun for a caller that has left before its turn', async () => {
    const takeTurn = makeAccountTurns();
    const gate = Promise.withResolvers<void>();
    const first = Array.from({ length: maxReading }, () => takeTurn(by('a'), () => gate.promise));
    const left = by('a');
    let isAsked = false;
    left.res.writeContinue = () => (isAsked = true);
    const begun = takeTurn(left, async () => 'begun');
    left.res.req.socket.emit('end');
    expect(isAsked, 'asked whether it has left').to.equal(true);
    Object.assign(left.res, { destroyed: true }).emit('close');
    gate.resolve();
    expect(await begun).to.equal(null);
    await Promise.all(first);
  });

  it(`are refused while ${maxWaiting} wait, and taken again when these are done`, async () => {
    const takeTurn = makeAccountTurns();
    const gate = Promise.withResolvers<void>();
    const many = Array.from({ length: maxReading + maxWaiting }, () => takeTurn(by('a'), () => gate.promise));
    const refused: Refusal = await takeTurn(by('a'), async () => undefined).catch((error) => error);
    expect([refused.code, refused.retryAfter]).to.deep.equal(['rate_limited', 1]);
    expect(refused.message).to.equal('You have exceeded the waiting-calls rate limit on your subscription');
    expect(await takeTurn(by('b'), async () => 'other')).to.equal('other');
    gate.resolve();
    await Promise.all(many);
    expect(await takeTurn(by('a'), async () => 'again')).to.equal('again');
  });

  it('are refused sooner while those of other accounts wait: several noisy ones leave room for the requests of everybody', async () => {
    const takeTurn = makeAccountTurns();
    let gate = Promise.withResolvers<void>();
    const refusedOf = async (account: string) => {
      let refused = 0;
      const many = Array.from({ length: maxReading + maxWaiting }, () =>
        takeTurn(by(account), () => gate.promise).catch(() => refused++),
      );
      all.push(...many);
      // A refusal settles at once, a call that waits does not.
      await new Promise(setImmediate);
      return refused;
    };
    const all: Promise<unknown>[] = [];
    const waiting = [];
    for (const account of ['a', 'b', 'c', 'd']) waiting.push(maxWaiting - (await refusedOf(account)));
    expect(waiting).to.deep.equal([500, 250, 125, 63]);
    gate.resolve();
    await Promise.all(all);
    gate = Promise.withResolvers();
    expect(await refusedOf('d')).to.equal(0);
    gate.resolve();
    await Promise.all(all);
  });
});

describe('pages of jobs that one account asks for at once', () => {
  let api: TestApi;
  let noisy: ApiCaller;
  let other: ApiCaller;
  /** Accounts whose lists are read, or jobs whose batch is counted, in their order. */
  let read: string[];
  let gate: PromiseWithResolvers<void>;
  beforeEach(async () => {
    read = [];
    gate = Promise.withResolvers();
    api = await startApi({}, (parts) => {
      const { connection } = parts.store;
      const held: typeof connection = {
        ...connection,
        read: async (command) => {
          if (command[0] !== 'ZREVRANGEBYSCORE') return connection.read(command);
          read.push(String(command[1]));
          await gate.promise;
          return connection.read(command);
        },
        readAll: async (commands) => {
          if (commands[0]?.[2] !== 'status') return connection.readAll(commands);
          read.push('batch');
          await gate.promise;
          return connection.readAll(commands);
        },
      };
      return { ...parts, store: { ...parts.store, connection: held } };
    });
    [noisy, other] = [await api.addCaller({ credits: 9 }), await api.addCaller()];
  });
  afterEach(async () => {
    gate.resolve();
    await api.stop();
  });

  const readsOf = (name: string) => read.filter((one) => one === name).length;

  it('are read four at once, so that those of another account need not wait for them', async () => {
    const lists = Array.from({ length: 12 }, () => api.get('/v1/jobs', noisy.key));
    await until(() => readsOf(keys.jobs(noisy.account)) >= 2 * maxReading, 10, 'four lists are read');
    const seen = api.get('/v1/jobs', other.key);
    await until(() => readsOf(keys.jobs(other.account)) === 2, 10, 'the list of the other account is read');
    expect(readsOf(keys.jobs(noisy.account))).to.equal(2 * maxReading);
    gate.resolve();
    const answers = await Promise.all([...lists, seen]);
    expect(answers.map(({ status }) => status)).to.deep.equal(answers.map(() => 200));
  });

  it('are those of a batch as it is at its turn: one that was cancelled meanwhile is not Completed', async () => {
    const body = { endpoint: 'video', items: [{ query: film }] };
    const { batch_id } = (await api.call('POST', '/v1/batches', { key: noisy.key, body })).json;
    const lists = Array.from({ length: maxReading }, () => api.get('/v1/jobs', noisy.key));
    await until(() => readsOf(keys.jobs(noisy.account)) >= 2 * maxReading, 10, 'four lists are read');
    const view = api.get(`/v1/batches/${batch_id}`, noisy.key);
    // By then the view waits for its turn. It may come later, too: nothing here depends on it.
    expect((await api.get('/v1/usage', noisy.key)).json.held).to.equal(1);
    await cancelBatch(api.store, batch_id);
    const [id = ''] = (await readBatch(api.store, batch_id))?.jobIds ?? [];
    await cancelJob(api.store, (await readJob(api.store, id))!);
    gate.resolve();
    await Promise.all(lists);
    expect((await view).json.status).to.equal('Cancelled');
  });

  for (const [verb, method, counts] of [
    ['counted', 'GET', { queued: 1, failed: 0 }],
    ['cancelled', 'DELETE', { queued: 0, failed: 1 }],
  ] as const) {
    it(`are ${verb} four at once where they are those of a batch`, async () => {
      const body = { endpoint: 'video', items: [{ query: film }] };
      const { batch_id } = (await api.call('POST', '/v1/batches', { key: noisy.key, body })).json;
      const path = `/v1/batches/${batch_id}`;
      const views = Array.from({ length: 12 }, () => api.call(method, path, { key: noisy.key }));
      await until(() => readsOf('batch') >= maxReading, 10, 'four are counted');
      expect((await api.get('/v1/usage', noisy.key)).status).to.equal(200);
      expect(readsOf('batch')).to.equal(maxReading);
      gate.resolve();
      for (const { status, json } of await Promise.all(views)) {
        expect(status).to.equal(200);
        expect(json.counts).to.include(counts);
      }
    });
  }
});
