import { expect } from 'chai';
import { startTestController, type TestController } from '../support/cluster/controller.ts';
import { namespace, type PlanOf, type Scene, setScene } from '../support/cluster/scene.ts';
import { startWebhook } from '../support/cluster/webhook.ts';
import { until } from '../support/until.ts';

const core = `/api/v1/namespaces/${namespace}`;
const merge = 'application/merge-patch+json';

describe('why a job waits in a cluster', function () {
  this.timeout(120_000);
  let scene: Scene;
  let controller: TestController;

  before(async () => {
    scene = await setScene();
    controller = await startTestController(scene);
  });
  after(async () => {
    await controller?.end('SIGTERM');
    await scene?.stop();
  });

  const ask: Scene['cluster']['admin']['ask'] = (...words) => scene.cluster.admin.ask(...words);
  const waits = (id: string, reason: string) =>
    until(async () => (await scene.job(id)).stage === reason, 30, `${id} says: ${reason}`);
  const completes = async (id: string) => {
    expect((await scene.ended(id, 60)).status).to.equal('CompletedJob');
    expect(await scene.wrongs([id])).to.deep.equal([]);
    await scene.cleared(30);
    return scene.job(id);
  };
  /** A job whose first attempt waits for ever. */
  const waiting = (reason: string, message: string) => {
    const plan: PlanOf = (attempt) => (attempt === 1 ? { waits: { reason, message } } : undefined);
    return scene.submit(plan);
  };

  it('the quota does not even let a Job be made', async () => {
    const hard = { 'count/jobs.batch': '0' };
    await ask('POST', `${core}/resourcequotas`, { metadata: { name: 'no-jobs' }, spec: { hard } });
    const counts = async () => Boolean((await ask('GET', `${core}/resourcequotas/no-jobs`)).status?.hard);
    await until(counts, 30, 'the quota counts');
    const id = await scene.submit();
    await waits(id, 'It cannot be started now');
    await ask('DELETE', `${core}/resourcequotas/no-jobs`);
    expect(await completes(id)).to.include({ attempt: 1, failures: 0, interruptions: 0 });
  });

  it('no node has room', async () => {
    const cordon = (unschedulable: boolean) =>
      Promise.all(
        scene.kubelet.nodes.map((node) => ask('PATCH', `/api/v1/nodes/${node}`, { spec: { unschedulable } }, merge)),
      );
    await cordon(true);
    const id = await scene.submit();
    await waits(id, 'No node of the cluster has room for it');
    await cordon(false);
    expect(await completes(id)).to.include({ attempt: 1, failures: 0, interruptions: 0 });
  });

  it('the image is not there yet, which a worker that is told to go away does not survive', async () => {
    const id = await waiting('ImagePullBackOff', 'no such image');
    await waits(id, 'The image of the worker is being fetched');
    const { items } = await ask('GET', `${core}/pods`);
    await ask('DELETE', `${core}/pods/${items[0].metadata.name}`);
    expect(await completes(id)).to.include({ attempt: 2, failures: 0, interruptions: 1 });
  });

  it('an image that can never be there is a fault of the operator, is said loudly, and counts as a failure', async () => {
    const id = await waiting('InvalidImageName', 'not a name');
    expect(await completes(id)).to.include({ attempt: 2, failures: 1, interruptions: 0 });
    expect(controller.said()).to.match(/"level":"error".*InvalidImageName: not a name/);
  });

  it('a Job that the cluster refuses is said loudly, and waits until a person has changed that', async () => {
    const hook = await startWebhook(scene.cluster, { namespace, resource: 'jobs' }, () => ({ no: 'no Jobs' }));
    const id = await scene.submit();
    await waits(id, 'It cannot be started now');
    await hook.remove();
    expect(await completes(id)).to.include({ attempt: 1, failures: 0, interruptions: 0 });
    expect(controller.said()).to.match(/"level":"error","text":"the cluster refuses a Job".*no Jobs/);
  });

  it('a queue of the cluster admits a job when it is its turn', async () => {
    const held = { yes: [{ op: 'add', path: '/spec/suspend', value: true }] };
    const hook = await startWebhook(scene.cluster, { namespace, resource: 'jobs' }, () => held);
    const id = await scene.submit();
    await waits(id, 'The cluster has not admitted it yet');
    await hook.remove();
    await ask('PATCH', `/apis/batch/v1/namespaces/${namespace}/jobs/${id}-1`, { spec: { suspend: false } }, merge);
    expect(await completes(id)).to.include({ attempt: 1, failures: 0, interruptions: 0 });
  });

  it('a queue of the cluster takes the place of a job that runs away and gives it back later', async () => {
    const id = await scene.submit((attempt) => (attempt === 1 ? {} : undefined));
    await scene.runningPod(id);
    await ask('PATCH', `/apis/batch/v1/namespaces/${namespace}/jobs/${id}-1`, { spec: { suspend: true } }, merge);
    expect(await completes(id)).to.include({ attempt: 2, failures: 0, interruptions: 1 });
  });
});
