import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { makeAccountTurns } from '../../src/api/account-turns.ts';
import type { KeyedCall } from '../../src/api/api-call.ts';
import { cancelBatch } from '../../src/store/batches/cancel-batch.ts';
import { readBatch } from '../../src/store/batches/read-batch.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { keys } from '../../src/store/keys.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { film } from '../support/calls.ts';
import { until } from '../support/until.ts';

const maxReading = 4;

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

describe('a place among the calls of an account that wait', () => {
  it('is free for another call once its caller has left, or has had its turn', async () => {
    const takeTurn = makeAccountTurns();
    const gate = Promise.withResolvers<string>();
    const begin = () => {
      const req = { socket: new EventEmitter(), httpVersion: '1.1' };
      const res = Object.assign(new EventEmitter(), { req }) as unknown as ServerResponse;
      const key = { accountId: 'a' } as KeyedCall['key'];
      return { res, done: takeTurn({ key, res }, () => gate.promise) };
    };
    const read = Array.from({ length: maxReading }, begin);
    const waiting = Array.from({ length: 500 }, begin);
    const refused = await begin().done.catch((error: Error) => error);
    expect(refused).to.be.instanceOf(Error);
    for (const { res } of waiting) res.emit('close');
    const late = Array.from({ length: 500 }, begin);
    gate.resolve('read');
    const answersOf = async (calls: typeof read) => new Set(await Promise.all(calls.map(({ done }) => done)));
    expect(await answersOf([...read, ...late])).to.deep.equal(new Set(['read']));
    expect(await answersOf(waiting)).to.deep.equal(new Set([null]));
    const again = Array.from({ length: maxReading + 500 }, begin);
    expect(await answersOf(again), 'after every turn').to.deep.equal(new Set(['read']));
  });
});
