import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { type Controller, startController } from '../../src/controller/controller.ts';
import { makeWorkerGateway } from '../../src/controller/worker-gateway.ts';
import { sharesOf } from '../../src/model/preemption.ts';
import { openListener } from '../../src/roles/socket.ts';
import { apiPathsOf } from '../../src/runners/kubernetes/kube-client.ts';
import { attemptSelector } from '../../src/runners/kubernetes/labels.ts';
import { parseEvent, type UnreadPart, unreadOfJob, unreadOfPod } from '../../src/runners/kubernetes/parse-event.ts';
import { openPodIdentity } from '../../src/runners/kubernetes/pod-identity.ts';
import { readJobSnapshot, readPodSnapshot } from '../../src/runners/kubernetes/snapshot.ts';
import { raisedLimits } from '../support/cluster/cluster.ts';
import { makePodToken } from '../support/cluster/pod-token.ts';
import { countServedChanges } from '../support/cluster/request-counts.ts';
import { aShape, openTestRunner, type TestRunner } from '../support/cluster/runner.ts';
import { namespace, startTestbed, type Testbed } from '../support/cluster/testbed.ts';
import { jobLimits } from '../support/job-limits.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const count = 60;
/** A change that is not answered in time is made again: on a busy machine that would count what is no cost of an attempt. */
const answerMs = 90_000;
/**
 * Rounds until one has no more changes than it may have. The Job controller updates the status of a Job more often the later it is
 * deleted, and again for each pod that a quota lets wait: 130 to 180 times a round on a quiet machine, up to 225 on a busy one. So a busy
 * machine only adds changes, and one round shows that an attempt does not need them.
 */
const maxRounds = 3;

describe('what an attempt costs the API server', function () {
  this.timeout(420_000);
  let testbed: Testbed;
  let runner: TestRunner;
  let controller: Controller;
  const asked: { readonly method: string; readonly path: string }[] = [];

  before(async () => {
    testbed = await startTestbed({ flags: raisedLimits });
    const { cluster, store, objects } = testbed;
    const { log } = aLog();
    runner = await openTestRunner({
      ...{ cluster, namespace, log, answerMs },
      between: (client) => ({
        ...client,
        ask: (method, path, ask) => {
          asked.push({ method, path });
          return client.ask(method, path, ask);
        },
        change: (method, path, body) => {
          asked.push({ method, path });
          return client.change(method, path, body);
        },
      }),
    });
    controller = await startController({
      ...{
        store,
        limits: jobLimits,
        objects,
        log,
        shares: sharesOf(count, 0, 30),
        runners: [runner],
        runnerOf: () => runner,
      },
      metrics: makeMetrics(),
      traces: null,
    });
  });
  after(async () => {
    await controller?.close();
    await testbed?.stop();
  });

  it('is four changes of ours and at most 16 of all clients', async () => {
    const served: number[] = [];
    while (served.length < maxRounds && Math.min(...served) > 16 * count) {
      asked.length = 0;
      const before = await countServedChanges(testbed.cluster);
      const ids = [];
      for (let n = 0; n < count; n++) ids.push(await testbed.submit((_, ending) => ({ runMs: 200, ending })));
      await Promise.all(ids.map((id) => testbed.waitUntilEnded(id, 60)));
      await testbed.waitUntilEmpty(60);
      expect(await testbed.findProblems(ids)).to.deep.equal([]);
      // An object that a watch shows late is read now and then.
      const { GET: _, ...changes } = Object.groupBy(asked, ({ method }) => method);
      const made = Object.fromEntries(Object.entries(changes).map(([method, all]) => [method, all?.length]));
      const removed = asked.filter(({ method }) => method === 'DELETE').map(({ path }) => path);
      expect(removed, 'each Job is deleted once, and no pod').to.deep.equal([...new Set(removed)]);
      expect(made).to.deep.equal({ POST: count, PATCH: 2 * count, DELETE: count });
      served.push((await countServedChanges(testbed.cluster)) - before);
    }
    expect(Math.min(...served), served.join(', ')).to.be.at.most(16 * count);
  });

  it('sends events of which the parts that are parsed tell as much as the whole', async () => {
    const { jobs, pods } = apiPathsOf(namespace);
    const stop = new AbortController();
    const parts: number[] = [];
    const follow = (path: string, read: (object: never) => unknown, unread: readonly UnreadPart[]) => {
      const seen = Promise.withResolvers<void>();
      let events = 0;
      const line = (text: string) => {
        const parsed = parseEvent(text, unread) as { object: never };
        expect(read(parsed.object), text).to.deep.equal(read(JSON.parse(text).object as never));
        parts.push(JSON.stringify(parsed).length / text.length);
        events++;
        if (events === 4) seen.resolve();
      };
      const query = { watch: true, labelSelector: attemptSelector };
      const ended = runner.client.stream(path, query, stop.signal, { onStart: () => {}, line });
      ended.catch((error: unknown) => stop.signal.aborted || seen.reject(error));
      return seen.promise;
    };
    const all = Promise.all([follow(jobs, readJobSnapshot, unreadOfJob), follow(pods, readPodSnapshot, unreadOfPod)]);
    await testbed.waitUntilEnded(await testbed.submit((_, ending) => ({ runMs: 200, ending })), 60);
    await testbed.waitUntilEmpty(60);
    await all;
    stop.abort();
    expect(Math.max(...parts), 'the largest part that is parsed').to.be.below(0.6);
  });

  it('is no request for the progress of a worker', async () => {
    const { cluster, store, objects } = testbed;
    const attemptOf = openPodIdentity({
      client: runner.client,
      state: runner.state,
      shape: aShape(namespace),
      clocks: [Date.now],
    });
    const server = makeWorkerGateway({
      ...{ store, objects, attemptOf, maxFileBytes: 1, maxAttemptMs: 1_000, inspectSeconds: 1, log: aLog().log },
      cookiesOf: async () => null,
    });
    const stop = await openListener(server, { host: '127.0.0.1', port: 0 });
    const id = await testbed.submit(() => ({}));
    const authorization = `Bearer ${await makePodToken(cluster, await testbed.runningPod(id))}`;
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/attempt/progress`;
    const tell = async (progress: number) => {
      const body = JSON.stringify({ progress, stage: 'fetch', speed_bytes: null, eta_seconds: null });
      expect((await fetch(url, { method: 'POST', headers: { authorization }, body })).status).to.equal(200);
    };
    await until(async () => (await testbed.job(id)).status === 'Running', 10, 'the job runs');
    // The keys of the cluster are read once.
    await tell(1);
    const before = asked.length;
    for (let progress = 2; progress <= 99; progress++) await tell(progress);
    // Progress is written at most once a second.
    await until(async () => (await testbed.job(id)).progress === 99, 10, 'the last progress is recorded');
    expect(asked.slice(before)).to.deep.equal([]);
    await stop();
  });
});
