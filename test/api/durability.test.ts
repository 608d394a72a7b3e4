import { expect } from 'chai';
import { renderMetrics } from '../../src/base/metrics.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { askOnce } from '../../src/store/redis/redis-client.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { creditPaths, expectRefused, film } from '../support/calls.ts';
import { endJob } from '../support/job-steps.ts';
import { until } from '../support/until.ts';

const setting = 'no-appendfsync-on-rewrite';

describe('an API whose Redis begins to lose changes', () => {
  let api: TestApi;
  let caller: ApiCaller;
  afterEach(() => api.stop());

  const begin = async (durability: string) => {
    api = await startApi({ TRAWL_DURABILITY: durability });
    caller = await api.addCaller();
  };
  /** Changes the setting and breaks every connection: the next one may be to another Redis. */
  const set = async (value: 'yes' | 'no') => {
    await api.redis.connection.send(['CONFIG', 'SET', setting, value]);
    await askOnce(api.redis.url, ['CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes']);
    const isSeen = () => api.redis.connection.durability().weaknesses.length === (value === 'yes' ? 1 : 0);
    await until(() => isSeen() && api.redis.connection.ready(), 10, 'the new connection to be judged');
  };
  const submit = () => api.get('/v1/video/download', caller.key, { query: film });
  const closed = async () =>
    (await renderMetrics(api.metrics)).match(/^trawl_admissions_closed\{reason="([\w-]+)"\} 1$/m)?.[1];

  it('admits nothing with strict, says why, ends what it has, and admits again when the setting is right', async () => {
    await begin('strict');
    const id = String((await submit()).json.job_id);
    expect(await closed()).to.equal(undefined);
    await set('yes');
    for (const path of creditPaths) {
      expectRefused(await api.get(path, caller.key, { query: film }), 503, 'unavailable', 'Service Unavailable');
    }
    expect(await closed()).to.equal(setting);
    expect(await renderMetrics(api.metrics)).to.contain('\ntrawl_admissions_closed{reason="memory"} 0\n');
    await endJob(api.store, id);
    expect((await api.get(`/v1/jobs/${id}`, caller.key)).json.status).to.equal('CompletedJob');
    await set('no');
    expect(await closed()).to.equal(undefined);
    expect((await submit()).status).to.equal(202);
    expect((await verifyLedger(api.store, caller.account)).problems).to.deep.equal([]);
  });

  it('admits all the same with relaxed', async () => {
    await begin('relaxed');
    await set('yes');
    expect((await submit()).status).to.equal(202);
    expect(await closed()).to.equal(undefined);
  });
});
