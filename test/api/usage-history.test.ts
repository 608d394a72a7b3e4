import { expect } from 'chai';
import { archiveDays } from '../../src/archive/archive-days.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { readKey } from '../../src/model/api-key.ts';
import { keys } from '../../src/store/keys.ts';
import { freeLineStream, paidLineStream } from '../../src/store/log/read-lines.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film } from '../support/calls.ts';
import { endJob, runJob } from '../support/job-steps.ts';
import { anotherKey, completed, failed } from '../support/record.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const dayMs = 86_400_000;

describe('usage history', () => {
  let api: TestApi;
  beforeEach(async () => {
    api = await startApi();
    api.store.advanceToNoon();
  });
  afterEach(() => api.stop());

  const dayText = () => new Date(api.store.clock.now()).toISOString().slice(0, 10);
  const history = async ({ key }: Pick<ApiCaller, 'key'>, params = {}) =>
    (await api.get('/v1/usage/history', key, params)).json.days;
  /** Waits until the lines of that many calls are written, without a call of its own. */
  const logged = (keyId: string, calls: number) =>
    until(
      async () => {
        const streams = [freeLineStream(keyId), paidLineStream(keyId)];
        const lengths = streams.map(({ stream }) => api.store.connection.send(['XLEN', stream]));
        return (await Promise.all(lengths)).reduce<number>((sum, one) => sum + Number(one), 0) === calls;
      },
      10,
      'the lines of the request log',
    );
  const download = async (key: string, ending: typeof completed | typeof failed) => {
    const { job_id } = (await api.get('/v1/video/download', key, { query: film })).json;
    await runJob(api.store, job_id);
    await endJob(api.store, job_id, ending);
  };
  const archive = () =>
    archiveDays({
      ...{ store: api.store, objects: api.objects, lifetimes: { job: 30 * dayMs } },
      ...{ goOn: () => true, metrics: makeMetrics(), log: aLog().log },
    });

  it('price-history: counts calls, credits and outcomes by day and key, archived days included, and costs nothing', async () => {
    const caller = await api.addCaller({ credits: 10 });
    const other = await anotherKey(api.store, caller.account);
    const otherId = readKey(other)!.keyId;
    await download(caller.key, completed);
    await download(caller.key, failed);
    await api.get('/v1/media/metadata', caller.key, { query: film });
    await api.get('/v1/media/metadata', caller.key, { query: 'nonsense' });
    await download(other, completed);
    await logged(caller.keyId, 6);
    await logged(otherId, 2);
    const first = { day: dayText(), key: `k${caller.keyId}`, calls: 4, credits: 2, completed: 2, failed: 1 };
    const second = { day: dayText(), key: `k${otherId}`, calls: 1, credits: 1, completed: 1, failed: 0 };
    const wanted = [first, second].sort((a, b) => (a.key < b.key ? -1 : 1));
    expect(await history(caller)).to.deep.equal(wanted);
    expect(await history({ key: other }, { fields: 'days.credits' })).to.deep.equal(
      wanted.map(({ credits }) => ({ credits })),
    );
    await logged(caller.keyId, 7);
    await logged(otherId, 3);

    api.store.advance(3 * dayMs);
    expect(await archive()).to.equal(10);
    const more = (one: typeof first) => ({ ...one, calls: one.calls + 1 });
    const range = { from: first.day, to: first.day };
    // The counts stand in the list of parts, so no object is read.
    for (const { object } of await partsOf(caller.keyId)) await api.objects.remove(object.replace(/[^/]*$/, ''));
    expect(await history(caller, range)).to.deep.equal(wanted.map(more));
    expect((await api.get('/v1/usage', caller.key)).json.credits.consumed).to.equal(3);
  });

  it('is read once for calls of an account at the same time, whatever their days', async () => {
    const gate = Promise.withResolvers<void>();
    let stream = '';
    let reads = 0;
    const held = await startApi({}, (parts) => {
      const { connection } = parts.store;
      const read: typeof connection.read = async (command) => {
        if (command[0] === 'XRANGE' && command[1] === stream) {
          reads++;
          await gate.promise;
        }
        return connection.read(command);
      };
      return { ...parts, store: { ...parts.store, connection: { ...connection, read } } };
    });
    try {
      const { key, keyId } = await held.addCaller();
      ({ stream } = freeLineStream(keyId));
      const ask = (day: number) => held.get('/v1/usage/history', key, { from: `2026-03-0${day}`, to: '2026-03-09' });
      const first = ask(1);
      await until(() => reads === 1, 10, 'the lines of the key are read');
      const others = [2, 3, 4, 5].map(ask);
      // A call of its own connection behind those of the others.
      expect((await held.get('/v1/usage', key)).status).to.equal(200);
      expect(reads).to.equal(1);
      gate.resolve();
      for (const { status } of await Promise.all([first, ...others])) expect(status).to.equal(200);
    } finally {
      gate.resolve();
      await held.stop();
    }
  });

  it('refuses what is no day, and more than 92 of them', async () => {
    const { key } = await api.addCaller();
    const refused = [
      [{ from: '2026-02-30' }, /from must be a day since 1970, such as 2026-03-04/],
      [{ to: '2026-03-04T00:00:00Z' }, /to must be a day/],
      [{ from: '2026-03-04', to: '2026-03-03' }, /from must not be after to/],
      [{ from: '2026-01-01', to: '2026-04-03' }, /not 92 days or more/],
    ] as const;
    for (const [params, sentence] of refused) {
      expectRefused(await api.get('/v1/usage/history', key, params), 400, 'bad_request', sentence);
    }
    expect(await history({ key }, { from: '2026-01-01', to: '2026-04-02' })).to.deep.equal([]);
    expectRefused(await api.get('/v1/usage/history'), 401, 'invalid_api_key', 'Invalid API Key');
  });

  async function partsOf(keyId: string): Promise<{ object: string }[]> {
    const lists = [keys.freeDays(keyId), keys.paidDays(keyId)];
    const found = await Promise.all(lists.map((list) => api.store.connection.read(['LRANGE', list, '0', '-1'])));
    return found.flat().map((json) => JSON.parse(json) as { object: string });
  }
});
