import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { type Controller, startController } from '../../src/controller/controller.ts';
import { quickLoss } from '../support/cluster/cluster.ts';
import { openTestRunner, type TestRunner } from '../support/cluster/runner.ts';
import { namespace, type Scene, setScene } from '../support/cluster/scene.ts';
import { startWebhook } from '../support/cluster/webhook.ts';
import { jobLimits } from '../support/job-limits.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const limits = { ...jobLimits, maxAttempts: 2 };
const image = 'The image of the worker is being fetched';
const start = 'The worker cannot be started yet';

/** What a container waits for, what its caller reads, and for how many seconds that may pass by itself. */
const waits = [
  ['ErrImagePull', 'no such host', image, 180],
  ['ImagePullBackOff', 'no such image', image, 180],
  ['CreateContainerConfigError', 'no such key', start, 60],
  ['CreateContainerError', 'no such user', start, 180],
  ['RunContainerError', 'no such file', start, 180],
] as const;

describe('what waits in a cluster for longer than it passes by itself', function () {
  this.timeout(120_000);
  let scene: Scene;
  const { log, lines } = aLog();

  before(async () => {
    scene = await setScene({ flags: quickLoss });
  });
  after(() => scene?.stop());

  /** Runs jobs with workers of this shape in this process, whose clock goes by that of the record. */
  async function controlled(queue: string | null, work: (controller: Controller, runner: TestRunner) => Promise<void>) {
    const { cluster, store, objects } = scene;
    const runner = await openTestRunner({ ...{ cluster, namespace, log }, now: store.clock.now, shape: { queue } });
    const controller = await startController({
      ...{ store, limits, objects, log, slots: 10, runners: [runner], runnerOf: () => runner },
      metrics: makeMetrics(),
      times: { renewMs: 100 },
    });
    try {
      await work(controller, runner);
    } finally {
      await controller.close();
      // The cluster writes the true time: the next test begins there.
      store.advance(-store.clock.offset());
    }
  }

  const says = (id: string, stage: string) =>
    until(async () => (await scene.job(id)).stage === stage, 30, `${id} says: ${stage}`);
  const pass = async (controller: Controller, id: string, seconds: number) => {
    scene.store.advance(seconds * 1000);
    await until(() => controller.isLeading(), 10, 'it leads again');
    controller.hint(id);
  };
  const ends = async (controller: Controller, id: string) => {
    const isEnded = async () => {
      controller.hint(id);
      return (await scene.job(id)).ended_at !== null;
    };
    await until(isEnded, 60, `${id} ends`);
    expect(await scene.wrongs([id])).to.deep.equal([]);
    await scene.cleared(30);
    return scene.job(id);
  };
  const ask: Scene['cluster']['admin']['ask'] = (...words) => scene.cluster.admin.ask(...words);
  const waitsWithoutPod = async (controller: Controller, id: string, stage: string) => {
    const isSaid = async () => {
      await pass(controller, id, 1);
      return (await scene.job(id)).stage === stage;
    };
    await until(isSaid, 30, `${id} says: ${stage}`);
  };
  const cordon = (unschedulable: boolean) => {
    const nodes = scene.kubelet.nodes.map((node) => `/api/v1/nodes/${node}`);
    return Promise.all(nodes.map((node) => ask('PATCH', node, { spec: { unschedulable } })));
  };

  for (const [reason, message, stage, seconds] of waits) {
    it(`${reason} is a fault of the operator after ${seconds} s`, () =>
      controlled(null, async (controller) => {
        const id = await scene.submit((attempt) => (attempt === 1 ? { waits: { reason, message } } : undefined));
        await says(id, stage);
        await pass(controller, id, seconds);
        await until(async () => (await scene.job(id)).failures === 1, 30, 'the first attempt has failed');
        expect(lines.join('\n')).to.match(new RegExp(`"level":"error".*${reason}: ${message}`));
        await pass(controller, id, 5);
        expect(await ends(controller, id)).to.include({ status: 'CompletedJob', attempt: 2 });
      }));
  }

  const isRefused = async (controller: Controller, said: RegExp, lift: () => Promise<unknown>) => {
    const id = await scene.submit();
    const hasFailed = async () => {
      // A Job without a pod is looked at closely after a moment.
      await pass(controller, id, 1);
      return (await scene.job(id)).failures === 1;
    };
    await until(hasFailed, 30, 'the first attempt has failed');
    await lift();
    await pass(controller, id, 5);
    expect(await ends(controller, id)).to.include({ status: 'CompletedJob', attempt: 2 });
    expect(lines.join('\n')).to.match(said);
  };
  const pods = { namespace, resource: 'pods' } as const;

  it('a pod that the limits of the namespace forbid is a fault of the operator', () =>
    controlled(null, async (controller) => {
      const limits = [{ type: 'Container', max: { memory: '16Mi' } }];
      const path = `/api/v1/namespaces/${namespace}/limitranges`;
      await ask('POST', path, { metadata: { name: 'tiny' }, spec: { limits } });
      const said = /"level":"error".*maximum memory usage per Container is 16Mi/;
      await isRefused(controller, said, () => ask('DELETE', `${path}/tiny`));
    }));

  it('a pod that a webhook of somebody else does not allow is one too', () =>
    controlled(null, async (controller) => {
      const hook = await startWebhook(scene.cluster, pods, () => ({ no: 'not here' }));
      await isRefused(controller, /"level":"error".*denied the request: not here/, hook.remove);
    }));

  it('a pod that somebody else has made unsafe is one too', () =>
    controlled(null, async (controller) => {
      const path = '/spec/containers/0/securityContext/allowPrivilegeEscalation';
      const unsafe = { yes: [{ op: 'replace', path, value: true }] };
      const hook = await startWebhook(scene.cluster, pods, () => unsafe);
      await isRefused(controller, /"level":"error".*violates PodSecurity/, hook.remove);
    }));

  it('a pod that nobody can judge now waits until somebody can', () =>
    controlled(null, async (controller) => {
      const hook = await startWebhook(scene.cluster, pods, () => ({ yes: [] }));
      await hook.silence();
      const id = await scene.submit();
      await waitsWithoutPod(controller, id, 'The cluster makes no pod for it');
      await hook.remove();
      expect(await ends(controller, id)).to.include({ status: 'CompletedJob', attempt: 1 });
    }));

  it('a pod for which the quota of the cluster has no place waits until there is one', () =>
    controlled(null, async (controller) => {
      const path = `/api/v1/namespaces/${namespace}/resourcequotas`;
      await ask('POST', path, { metadata: { name: 'none' }, spec: { hard: { pods: '0' } } });
      const counts = async () => (await ask('GET', `${path}/none`)).status?.hard?.pods === '0';
      await until(counts, 30, 'the quota counts');
      const id = await scene.submit();
      await waitsWithoutPod(controller, id, 'The quota of the cluster is used up');
      await ask('DELETE', `${path}/none`);
      expect(await ends(controller, id)).to.include({ status: 'CompletedJob', attempt: 1 });
    }));

  it('a registry that has had enough for now passes by itself', () =>
    controlled(null, async (controller, runner) => {
      const waits = { reason: 'ImagePullBackOff', message: 'toomanyrequests: slow down' };
      const id = await scene.submit((attempt) => (attempt === 1 ? { waits } : undefined));
      await says(id, image);
      scene.store.advance(1_800_000);
      expect(await runner.see(`${id}-1`)).to.deep.equal({ is: 'waiting', reason: image });
      await runner.stop(`${id}-1`);
      expect(await ends(controller, id)).to.include({ status: 'CompletedJob', attempt: 2 });
    }));

  it('what no node takes is tried again after 15 minutes, then ends: nothing is charged, and the operator is told', () =>
    controlled(null, async (controller) => {
      await cordon(true);
      const id = await scene.submit();
      await says(id, 'No node of the cluster has room for it');
      await pass(controller, id, 900);
      await until(async () => (await scene.job(id)).failures === 1, 30, 'the first attempt has failed');
      // By the clock of this test the pod of the second one is as old when it is made.
      await pass(controller, id, 5);
      expect(await ends(controller, id)).to.include({
        ...{ status: 'Error', error_code: 'queue_timeout', attempt: 2 },
        error: 'No node of the cluster had room for the job',
      });
      await cordon(false);
      expect(lines.join('\n')).to.match(/"level":"error".*Unschedulable: 0\/2 nodes are available/);
    }));

  it('what a queue of the cluster has admitted waits for a node as long as the job may', () =>
    controlled('media', async (controller, runner) => {
      await cordon(true);
      const id = await scene.submit();
      await says(id, 'No node of the cluster has room for it');
      scene.store.advance(1_800_000);
      expect(await runner.see(`${id}-1`)).to.include({ is: 'waiting' });
      await cordon(false);
      expect(await ends(controller, id)).to.include({ status: 'CompletedJob', attempt: 1 });
    }));

  it('where all nodes are away the cluster takes no pod away: after a while it is lost all the same', () =>
    controlled(null, async (controller, runner) => {
      const id = await scene.submit((attempt) => (attempt === 1 ? {} : undefined));
      const { metadata } = await scene.runningPod(id);
      for (const node of scene.kubelet.nodes) scene.kubelet.cutOff(node);
      const isUnheard = () => runner.state.pod(metadata.name)?.notReadySince !== null;
      await until(isUnheard, 30, 'the cluster hears nothing of the node');
      await until(async () => (await runner.see(`${id}-1`)).is === 'running', 5, 'it is let alone');
      expect(runner.state.pod(metadata.name)?.deletedAt).to.equal(null);
      await pass(controller, id, 125);
      await until(async () => (await scene.job(id)).interruptions === 1, 30, 'the first attempt is lost');
      for (const node of scene.kubelet.nodes) scene.kubelet.restore(node);
      expect(await ends(controller, id)).to.include({ status: 'CompletedJob', attempt: 2 });
    }));
});
