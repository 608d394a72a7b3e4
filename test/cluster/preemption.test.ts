import { expect } from 'chai';
import { startTestController, type TestController } from '../support/cluster/controller.ts';
import { namespace, startTestbed, type Testbed } from '../support/cluster/testbed.ts';
import { admitted, anAccount } from '../support/record.ts';
import { readAttempts } from '../support/stored-job.ts';
import { until } from '../support/until.ts';

describe('an account that holds every worker of a cluster', () => {
  let testbed: Testbed;
  let controller: TestController;

  before(async () => {
    testbed = await startTestbed();
    const env = { TRAWL_WORKERS: '2', TRAWL_PREEMPT_SECONDS: '1' };
    controller = await startTestController(testbed, { env });
  });
  after(async () => {
    await controller?.end('SIGTERM');
    await testbed?.stop();
  });

  it('D74: loses the worker of its youngest job to an account without any, once, and both of its jobs complete', async () => {
    const { store, cluster } = testbed;
    // An attempt without an end runs on; the next one delivers.
    const first = await testbed.submit((attempt, deliver) =>
      attempt === 1 ? { runMs: 15_000, ending: deliver } : undefined,
    );
    await testbed.runningPod(first);
    const second = await testbed.submit((attempt) => (attempt === 1 ? {} : undefined));
    const pod = await testbed.runningPod(second);
    const other = await anAccount(store, { credits: 1 });
    const id = await admitted(store, other);
    expect((await testbed.waitUntilEnded(id, 60)).status).to.equal('CompletedJob');
    const path = `/api/v1/namespaces/${namespace}/pods/${pod.metadata.name}`;
    const isGone = () =>
      cluster.admin.ask('GET', path).then(
        () => false,
        (error: Error) => error.message.includes('404'),
      );
    await until(isGone, 30, 'the pod of the interrupted attempt is gone');
    for (const own of [first, second]) expect((await testbed.waitUntilEnded(own, 60)).status).to.equal('CompletedJob');
    expect((await testbed.job(first)).interruptions).to.equal(0);
    expect((await testbed.job(second)).interruptions).to.equal(1);
    expect((await readAttempts(store, second))[1]).to.include({
      counts: 'interruption',
      reason: 'another account waited for a worker',
    });
    expect(await testbed.findProblems([first, second])).to.deep.equal([]);
    await testbed.waitUntilEmpty(30);
  });
});
