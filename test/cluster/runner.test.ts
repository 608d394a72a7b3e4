import { expect } from 'chai';
import { makeJob, makeTrialJob } from '../../src/runners/kubernetes/job-manifest.ts';
import { apiPathsOf, openKubeClient } from '../../src/runners/kubernetes/kube-client.ts';
import { findMissingPermissions } from '../../src/runners/kubernetes/permissions.ts';
import { makeRateLimiter } from '../../src/runners/kubernetes/rate-limiter.ts';
import { itRunsAttempts, type RunnerUnderTest } from '../runners/runner.contract.ts';
import { type Cluster, startCluster } from '../support/cluster/cluster.ts';
import { type FakeKubelet, startFakeKubelet } from '../support/cluster/fake-kubelet.ts';
import { endings } from '../support/cluster/pod.ts';
import {
  accessAs,
  aShape,
  countLeft,
  makeWorkersNamespace,
  openTestRunner,
  type TestRunner,
  type TestRunnerOptions,
} from '../support/cluster/runner.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const namespace = 'workers';

for (const defersCleanup of [true, false]) {
  describe(`workers as Jobs of a cluster, with cleanup ${defersCleanup ? 'deferred' : 'at once'}`, () => {
    let cluster: Cluster;
    let kubelet: FakeKubelet;
    let runner: TestRunner;
    let tested: RunnerUnderTest;
    const { log } = aLog();

    before(async () => {
      cluster = await startCluster();
      kubelet = await startFakeKubelet(cluster, { nodes: 2 });
      await makeWorkersNamespace(cluster, namespace);
      runner = await openTestRunner({ cluster, namespace, log, defersCleanup });
      const endPod = async (name: string, ending: Parameters<FakeKubelet['end']>[1]) => {
        const pods = () => kubelet.running().map(({ metadata }) => metadata.name);
        const pod = await until(() => pods().find((one) => one.startsWith(`${name}-`)), 20, `${name} runs`);
        kubelet.end(pod ?? '', ending);
      };
      tested = {
        runner,
        end: (name, code) => endPod(name, code === 0 ? endings.success() : endings.failure(code)),
        kill: (name) => endPod(name, endings.failure(137)),
        count: (name) => countLeft(cluster, namespace, `${name}-`),
      };
    });
    after(async () => {
      await runner?.close();
      await kubelet?.stop();
      await cluster?.stop();
    });

    itRunsAttempts(() => tested);

    it('miss no permission with the Role of the controller, and 12 with that of a worker', async () => {
      expect(await findMissingPermissions(runner.client, namespace)).to.deep.equal([]);
      const access = await accessAs(cluster, namespace, 'trawl-worker');
      const other = openKubeClient({ access, rateLimit: makeRateLimiter(100, 100, () => performance.now()) });
      expect(await findMissingPermissions(other, namespace))
        .to.have.length(12)
        .and.include('create jobs');
      await other.close();
    });

    const openCounted = async () => {
      const asked: string[] = [];
      const between: TestRunnerOptions['between'] = (client) => ({
        ...client,
        change: (method, path, body) => {
          asked.push(method);
          return client.change(method, path, body);
        },
      });
      const counted = await openTestRunner({ cluster, namespace, log, defersCleanup: false, between });
      const runToEnd = async (jobId: string) => {
        const name = `${jobId}-1`;
        await counted.start({ name, jobId, attempt: 1, maxMs: 60_000 });
        await tested.end(name, 0);
        await until(async () => (await counted.see(name)).is === 'ended', 20, 'the attempt has ended');
        return name;
      };
      return { asked, counted, runToEnd };
    };

    it('are removed by one request for each change when two callers stop them at once', async () => {
      const { asked, counted, runToEnd } = await openCounted();
      const name = await runToEnd('twice');
      await Promise.all([counted.stop(name), counted.stop(name)]);
      expect(asked.toSorted()).to.deep.equal(['DELETE', 'PATCH', 'PATCH']);
      await counted.close();
    });

    it('are not removed again while the finalizer of another holds the pod', async () => {
      const { asked, counted, runToEnd } = await openCounted();
      const name = await runToEnd('held');
      const path = `${apiPathsOf(namespace).pods}/${counted.state.podsOf(name)[0]?.name}`;
      const change = (method: 'PATCH' | 'DELETE', body: object) => cluster.admin.ask(method, path, body);
      await change('PATCH', { metadata: { finalizers: ['test/held'] } });
      await counted.stop(name);
      await change('DELETE', {});
      await counted.stop(name);
      expect(asked.toSorted()).to.deep.equal(['DELETE', 'PATCH', 'PATCH']);
      await change('PATCH', { metadata: { '$deleteFromPrimitiveList/finalizers': ['test/held'] } });
      await counted.close();
    });

    it('do not include a Job that tries the network', async () => {
      const { jobs } = apiPathsOf(namespace);
      const make = (body: object) => runner.client.ask('POST', jobs, { body });
      await make(makeTrialJob('network-trial-1', 'inspector:8083', aShape(namespace), 60));
      const later = { name: 'later-1', jobId: 'later', attempt: 1, maxMs: 60_000 } as const;
      await make(makeJob(later, aShape(namespace)));
      await until(async () => (await runner.list()).includes('later-1'), 20, 'the watch has come so far');
      expect(await runner.list()).not.to.include('network-trial-1');
      const run = () => kubelet.running().map(({ metadata }) => metadata.name.replace(/-[^-]+$/, ''));
      await until(() => run().includes('network-trial-1') && run().includes('later-1'), 20, 'both run');
      await runner.stop('later-1');
      await runner.client.change('DELETE', `${jobs}/network-trial-1`, { propagationPolicy: 'Background' });
    });

    it('leave no Job and no pod after stop', () =>
      until(async () => (await countLeft(cluster, namespace)) === 0, 20, 'no Job and no pod is left'));
  });
}
