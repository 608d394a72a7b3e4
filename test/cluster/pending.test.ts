import { expect } from 'chai';
import { startAdmissionWebhook } from '../support/cluster/admission-webhook.ts';
import { startTestController, type TestController } from '../support/cluster/controller.ts';
import { endings } from '../support/cluster/pod.ts';
import { namespace, type PlanOf, startTestbed, type Testbed } from '../support/cluster/testbed.ts';
import { until } from '../support/until.ts';

const core = `/api/v1/namespaces/${namespace}`;
const merge = 'application/merge-patch+json';

describe('a job that waits in a cluster', () => {
  let testbed: Testbed;
  let controller: TestController;

  before(async () => {
    testbed = await startTestbed();
    controller = await startTestController(testbed);
  });
  after(async () => {
    await controller?.end('SIGTERM');
    await testbed?.stop();
  });

  const ask: Testbed['cluster']['admin']['ask'] = (...words) => testbed.cluster.admin.ask(...words);
  const waits = (id: string, reason: string) =>
    until(async () => (await testbed.job(id)).stage === reason, 30, `${id} says: ${reason}`);
  const completes = async (id: string) => {
    expect((await testbed.waitUntilEnded(id, 60)).status).to.equal('CompletedJob');
    expect(await testbed.findProblems([id])).to.deep.equal([]);
    await testbed.waitUntilEmpty(30);
    return testbed.job(id);
  };
  const cordon = (unschedulable: boolean) =>
    Promise.all(
      testbed.kubelet.nodes.map((node) => ask('PATCH', `/api/v1/nodes/${node}`, { spec: { unschedulable } }, merge)),
    );
  /** A job whose first attempt waits for ever. */
  const waiting = (reason: string, message: string) => {
    const plan: PlanOf = (attempt) => (attempt === 1 ? { waits: { reason, message } } : undefined);
    return testbed.submit(plan);
  };

  it('says that the quota is used up while it forbids its Job, and completes without a failure', async () => {
    const hard = { 'count/jobs.batch': '0' };
    await ask('POST', `${core}/resourcequotas`, { metadata: { name: 'no-jobs' }, spec: { hard } });
    const counts = async () => Boolean((await ask('GET', `${core}/resourcequotas/no-jobs`)).status?.hard);
    await until(counts, 30, 'the quota counts');
    const id = await testbed.submit();
    await waits(id, 'The quota of the cluster is used up');
    await ask('DELETE', `${core}/resourcequotas/no-jobs`);
    expect(await completes(id)).to.include({ attempt: 1, failures: 0, interruptions: 0 });
  });

  it('says that no node has room, and completes without a failure once one has', async () => {
    await cordon(true);
    const id = await testbed.submit();
    await waits(id, 'No node of the cluster has room for it');
    await cordon(false);
    expect(await completes(id)).to.include({ attempt: 1, failures: 0, interruptions: 0 });
  });

  it('has its whole time once a node has room, although it has waited longer than it may run', async () => {
    await controller.end('SIGTERM');
    const runSeconds = 10;
    controller = await startTestController(testbed, { env: { TRAWL_JOB_SECONDS: String(runSeconds) } });
    await cordon(true);
    const id = await testbed.submit();
    await waits(id, 'No node of the cluster has room for it');
    const { created_at } = await testbed.job(id);
    await until(() => testbed.store.clock.now() > created_at + (runSeconds + 1) * 1000, 30, 'that time is over');
    await cordon(false);
    expect(await completes(id)).to.include({ attempt: 1, failures: 0, interruptions: 0 });
  });

  it('says that its image is being fetched, and counts an interruption when its pod is deleted', async () => {
    const id = await waiting('ImagePullBackOff', 'no such image');
    await waits(id, 'The image of the worker is being fetched');
    const { items } = await ask('GET', `${core}/pods`);
    await ask('DELETE', `${core}/pods/${items[0].metadata.name}`);
    expect(await completes(id)).to.include({ attempt: 2, failures: 0, interruptions: 1 });
  });

  it('has waited for too long when the kubelet ends its pod before the container starts, and is tried again', async () => {
    const id = await waiting('ContainerCreating', 'a volume is missing');
    const { items } = await until(
      async () => {
        const found = await ask('GET', `${core}/pods`);
        return found.items[0]?.status?.containerStatuses && found;
      },
      30,
      'a pod waits',
    );
    const { pod } = endings.deadline();
    testbed.kubelet.end(items[0].metadata.name, { ...endings.unstarted(), ...(pod && { pod }) });
    const job = await completes(id);
    expect(job).to.include({ attempt: 2, failures: 1, interruptions: 0 });
    const ended = controller
      .output()
      .split('\n')
      .find((line) => line.includes(id) && line.includes('the attempt ended'));
    expect(ended).to.match(/"counts":"failure","code":"queue_timeout"/);
  });

  it('with an invalid image name counts a failure and is logged as an error', async () => {
    const id = await waiting('InvalidImageName', 'not a name');
    expect(await completes(id)).to.include({ attempt: 2, failures: 1, interruptions: 0 });
    expect(controller.output()).to.match(/"level":"error".*InvalidImageName: not a name/);
  });

  it('whose container its node cannot start counts a failure and is logged as an error with the node', async () => {
    const error = { exitCode: 128, reason: 'StartError', message: 'OCI runtime create failed' };
    const id = await testbed.submit((attempt) => (attempt === 1 ? { runMs: 0, ending: error } : undefined));
    expect(await completes(id)).to.include({ attempt: 2, failures: 1, interruptions: 0 });
    expect(controller.output()).to.match(/"level":"error".*"node":"fake-\d".*StartError: OCI runtime create failed/);
  });

  it('whose Job an admission webhook refuses is logged as an error, and completes once the webhook is removed', async () => {
    const hook = await startAdmissionWebhook(testbed.cluster, { namespace, resource: 'jobs' }, () => ({
      no: 'no Jobs',
    }));
    const id = await testbed.submit();
    await waits(id, 'It cannot be started now');
    await hook.remove();
    expect(await completes(id)).to.include({ attempt: 1, failures: 0, interruptions: 0 });
    expect(controller.output()).to.match(/"level":"error","text":"the cluster refuses a Job".*no Jobs/);
  });

  it('starts although an admission webhook hangs until the cluster ignores it after 12 s, and keeps its watches', async () => {
    const jobs = { namespace, resource: 'jobs', ignoredAfterSeconds: 12 } as const;
    const hook = await startAdmissionWebhook(testbed.cluster, jobs, () => ({ yes: [] }));
    hook.hang();
    const said = controller.output().length;
    const id = await testbed.submit();
    await until(async () => (await testbed.job(id)).started_at !== null, 30, `${id} runs`);
    await hook.remove();
    expect(await completes(id)).to.include({ attempt: 1, failures: 0, interruptions: 0 });
    expect(controller.output().slice(said)).not.to.include('The API server does not answer');
  });

  it('says that the cluster has not admitted it while its Job is suspended, and completes after that', async () => {
    const held = { yes: [{ op: 'add', path: '/spec/suspend', value: true }] };
    const hook = await startAdmissionWebhook(testbed.cluster, { namespace, resource: 'jobs' }, () => held);
    const id = await testbed.submit();
    await waits(id, 'The cluster has not admitted it yet');
    await hook.remove();
    await ask('PATCH', `/apis/batch/v1/namespaces/${namespace}/jobs/${id}-1`, { spec: { suspend: false } }, merge);
    expect(await completes(id)).to.include({ attempt: 1, failures: 0, interruptions: 0 });
  });

  it('counts an interruption when its Job is suspended while it runs, and completes later', async () => {
    const id = await testbed.submit((attempt) => (attempt === 1 ? {} : undefined));
    await testbed.runningPod(id);
    await ask('PATCH', `/apis/batch/v1/namespaces/${namespace}/jobs/${id}-1`, { spec: { suspend: true } }, merge);
    expect(await completes(id)).to.include({ attempt: 2, failures: 0, interruptions: 1 });
  });
});
