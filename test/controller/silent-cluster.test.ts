import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { startController } from '../../src/controller/controller.ts';
import { sharesOf } from '../../src/model/preemption.ts';
import { openKubeClient } from '../../src/runners/kubernetes/kube-client.ts';
import { KubernetesRunner } from '../../src/runners/kubernetes/kubernetes-runner.ts';
import { makeRateLimiter } from '../../src/runners/kubernetes/rate-limiter.ts';
import { readActiveJobs } from '../../src/store/jobs/open-work.ts';
import { aRunner, emptyObjects } from '../support/advance.ts';
import { startFakeApiServer } from '../support/cluster/fake-api-server.ts';
import { aShape } from '../support/cluster/runner.ts';
import { jobLimits } from '../support/job-limits.ts';
import { aDownload, admitted, anAccount, storeOf, theJob } from '../support/record.ts';
import { aLog, startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

describe('a controller whose API server swallows requests', () => {
  it('starts a job that needs no cluster while 64 others wait for theirs', async () => {
    const redis = await startTestRedis();
    const store = storeOf(redis.connection);
    const server = await startFakeApiServer(false);
    const [metrics, { log }, now] = [makeMetrics(), aLog(), Date.now];
    const access = { server: server.url, tls: async () => ({}), headers: async () => ({}) };
    const rateLimit = makeRateLimiter(1_000, 1_000, () => performance.now());
    const client = openKubeClient({ access, rateLimit });
    const workers = new KubernetesRunner({ client, shape: aShape('workers'), now, metrics, log });
    const inspections = aRunner({});
    const controller = await startController({
      ...{ store, limits: jobLimits, metrics, traces: null, log, shares: sharesOf(100, 0, 30) },
      objects: emptyObjects,
      runners: [workers, inspections],
      runnerOf: ({ endpoint }) => (endpoint === 'metadata' ? inspections : workers),
    });
    try {
      const caller = await anAccount(store, { credits: 65, max_open: 65 });
      for (let n = 0; n < 64; n++) await admitted(store, caller);
      await until(async () => (await readActiveJobs(store)).length === 64, 10, 'all of them have a place');
      const id = await admitted(store, caller, { work: { ...aDownload, endpoint: 'metadata' } });
      await until(() => inspections.started.length > 0, 5, 'the other job starts');
      expect(inspections.started).to.deep.equal([`${id}-1`]);
      expect((await theJob(store, id)).attempt).to.equal(1);
    } finally {
      await controller.close();
      await server.stop();
      await redis.stop();
    }
  });

  it('starts a job that needs no cluster while a webhook of the cluster holds up the Jobs of 20 others', async () => {
    const redis = await startTestRedis();
    const store = storeOf(redis.connection);
    const { promise: held, resolve } = Promise.withResolvers<void>();
    const [workers, inspections] = [{ ...aRunner({}), start: () => held }, aRunner({})];
    const controller = await startController({
      ...{
        store,
        limits: jobLimits,
        metrics: makeMetrics(),
        traces: null,
        log: aLog().log,
        shares: sharesOf(100, 0, 30),
      },
      objects: emptyObjects,
      runners: [workers, inspections],
      runnerOf: ({ endpoint }) => (endpoint === 'metadata' ? inspections : workers),
    });
    try {
      const caller = await anAccount(store, { credits: 21, max_open: 21 });
      for (let n = 0; n < 20; n++) await admitted(store, caller);
      await until(async () => (await readActiveJobs(store)).length === 20, 10, 'all of them have a place');
      const id = await admitted(store, caller, { work: { ...aDownload, endpoint: 'metadata' } });
      await until(() => inspections.started.length > 0, 5, 'the other job starts');
      expect(inspections.started).to.deep.equal([`${id}-1`]);
    } finally {
      resolve();
      await controller.close();
      await redis.stop();
    }
  });
});
