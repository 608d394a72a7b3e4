import { expect } from 'chai';
import { startTestController } from '../support/cluster/controller.ts';
import { namespace, startTestbed, type Testbed } from '../support/cluster/testbed.ts';

describe('a worker pod from which somebody takes the name of its Job', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await startTestbed();
  });
  after(() => testbed?.stop());

  it('keeps its attempt, is removed at its end, and has nothing asked of all Jobs at once', async () => {
    const controller = await startTestController(testbed);
    const id = await testbed.submit((_, ending) => ({ runMs: 3_000, ending }));
    const { metadata } = await testbed.runningPod(id);
    const labels = { 'batch.kubernetes.io/job-name': null, 'job-name': null };
    const path = `/api/v1/namespaces/${namespace}/pods/${metadata.name}`;
    await testbed.cluster.admin.ask('PATCH', path, { metadata: { labels } });
    const job = await testbed.waitUntilEnded(id, 30);
    await testbed.waitUntilEmpty(30);
    await controller.end('SIGTERM');
    expect(job).to.include({ status: 'CompletedJob', failures: 0, interruptions: 0 });
    expect(controller.output()).not.to.match(/"level":"(warn|error)".*\/jobs\/ was answered/);
  });
});
