import { availableParallelism } from 'node:os';
import { expect } from 'chai';
import { aFilm, startApi } from '../support/api.ts';
import { expectRefused, film } from '../support/calls.ts';
import { makeService, type Service } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';

/** Slots of the inspector. */
const slots = 4 * availableParallelism();

describe('tarpits that one account names for synchronous metadata', () => {
  let service: Service;
  let source: Source;
  before(async () => {
    source = await startSource();
    service = makeService();
    await service.start();
  });
  after(async () => {
    await service.close();
    await source.stop();
  });

  it('as many as the inspector has slots leave the metadata of another account answered, and cost nothing', async () => {
    const [attacker, victim] = [await service.aCustomer(), await service.aCustomer()];
    const ask = (key: string, path: string) =>
      service.ask(key, `/v1/media/metadata?query=${encodeURIComponent(source.url + path)}`);
    const isWarm = async () => (await ask(victim.key, '/films/clip.mp4')).status === 200;
    await until(isWarm, 20, 'the inspector answers');

    const release = source.hold();
    const tarpits = () => source.asked.filter((path) => path.startsWith('/held/')).length;
    let isOver = false;
    const attack = Promise.all(Array.from({ length: 4 * slots }, () => ask(attacker.key, '/held/film.mp4')));
    void attack.then(() => {
      isOver = true;
    });
    await until(() => tarpits() >= slots / 2, 10, 'the tarpits hold the inspector');
    const statuses = [];
    for (let times = 0; times < 5; times++) {
      statuses.push((await ask(victim.key, '/films/clip.mp4')).status);
      // On a slow machine the tarpits reach their own time limit before the last answer.
      if (times === 0) expect(isOver, 'the attack is over').to.equal(false);
    }
    expect(statuses).to.deep.equal(Array(5).fill(200));

    release();
    const refused = (await attack).filter(({ status }) => status === 429);
    expect(refused).not.to.deep.equal([]);
    for (const { headers, json } of refused) {
      expect(json).to.deep.equal({ error: 'You have exceeded the metadata rate limit on your subscription' });
      expect(headers.get('x-error-code')).to.equal('rate_limited');
    }
  });
});

describe('the 429 of an inspector', () => {
  it('is the one of the call, which is free and counts in no statistics and in no quota (D35)', async () => {
    const api = await startApi();
    const { key } = await api.addCaller({ stats: true, quotas: { daily: 1, total: 1 } });
    const counted = async () => (await api.get('/v1/stats', key, { engine: 'metadata' })).json;
    const before = await counted();
    api.inspect(() => ({ status: 429 }));
    const answer = await api.get('/v1/media/metadata', key, { query: film });
    expectRefused(answer, 429, 'rate_limited', 'You have exceeded the metadata rate limit on your subscription');
    expect(answer.headers.get('retry-after')).to.match(/^\d+$/);
    const { held, total_used } = (await api.get('/v1/usage', key)).json;
    expect([held, total_used]).to.deep.equal([0, 0]);
    expect(await counted()).to.deep.equal(before);
    api.inspect(() => ({ metadata: aFilm }));
    expect((await api.get('/v1/media/metadata', key, { query: film })).status).to.equal(200);
    expect((await api.get('/v1/media/metadata', key, { query: film })).status).to.equal(401);
    await api.stop();
  });
});
