import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { openKubeClient } from '../../src/runners/kubernetes/kube-client.ts';
import { KubernetesRunner } from '../../src/runners/kubernetes/kubernetes-runner.ts';
import { finalizer, jobNameLabel } from '../../src/runners/kubernetes/labels.ts';
import { makeRateLimiter } from '../../src/runners/kubernetes/rate-limiter.ts';
import { type FakeApiServer, type FakeRequest, startFakeApiServer } from '../support/cluster/fake-api-server.ts';
import { aShape } from '../support/cluster/runner.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const job = (name: string) => ({
  metadata: { name, uid: `job-${name}`, resourceVersion: '5', finalizers: [finalizer] },
});
const pod = (attempt: string, phase: string) => ({
  metadata: {
    ...{ name: `${attempt}-x`, uid: `pod-${attempt}`, resourceVersion: '6', finalizers: [finalizer] },
    labels: { [jobNameLabel]: attempt },
  },
  status: { phase },
});
const listOf = (...items: object[]) => ({ items, metadata: { resourceVersion: '9' } });

describe('cleanup of an attempt while another Job waits for its pod', () => {
  let server: FakeApiServer;
  let runner: KubernetesRunner;
  let changes: FakeRequest[];
  const { log } = aLog();
  const usualNow = performance.now;

  /** Lets the pod of `late-1` come late, while `other-1` still waits for its own. */
  async function begin({
    queue = null as string | null,
    isExhausted = false,
    defersCleanup = true,
  } = {}): Promise<void> {
    const access = { server: server.url, tls: async () => ({}), headers: async () => ({}) };
    const rateLimit = { ...makeRateLimiter(1_000, 1_000, () => performance.now()), isExhausted: () => isExhausted };
    const client = openKubeClient({ access, rateLimit });
    const shape = { ...aShape('workers'), queue };
    runner = new KubernetesRunner({ client, shape, now: Date.now, metrics: makeMetrics(), log, defersCleanup });
    let pods: FakeRequest | undefined;
    for (let answered = 0; answered < 4; answered++) {
      const asked = await server.next();
      const isOfPods = asked.path.endsWith('/pods');
      if (asked.query.get('watch') === 'true') pods = isOfPods ? asked : pods;
      else
        asked.answer(
          200,
          isOfPods ? listOf(pod('done-1', 'Succeeded')) : listOf(...['done-1', 'late-1', 'other-1'].map(job)),
        );
    }
    performance.now = () => usualNow.call(performance) + 1_000;
    pods?.write(`${JSON.stringify({ type: 'ADDED', object: pod('late-1', 'Pending') })}\n`);
    await until(() => runner.state.podsOf('late-1').length > 0, 5, 'the late pod is seen');
  }
  /** Answers changes as they come. */
  async function answerChanges(status: number, count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      const asked = await server.next();
      changes.push(asked);
      asked.answer(status, {});
    }
  }

  beforeEach(async () => {
    server = await startFakeApiServer();
    changes = [];
  });
  afterEach(async () => {
    performance.now = usualNow;
    await runner.close();
    await server.stop();
  });

  it('hides a postponed attempt from the list until it is removed', async () => {
    await begin();
    await runner.stop('done-1');
    expect(await runner.list('done')).to.deep.equal([]);
    performance.now = () => usualNow.call(performance) + 100_000;
    expect(await runner.list('done')).to.deep.equal([]);
    await answerChanges(200, 3);
    await until(async () => (await runner.list('done')).length === 0, 5, 'the attempt is removed');
  });

  it('notifies of an attempt whose postponed cleanup failed, and lists it again', async () => {
    await begin();
    const notified: string[] = [];
    runner.watch((name) => notified.push(name));
    await runner.stop('done-1');
    performance.now = () => usualNow.call(performance) + 100_000;
    await answerChanges(500, 1);
    await until(() => notified.includes('done-1'), 5, 'listeners are notified');
    expect(await runner.list('done')).to.deep.equal(['done-1']);
  });

  for (const [when, options] of [
    ['what a Kueue queue counts', { queue: 'media' }],
    ['while our own requests wait for the rate limit', { isExhausted: true }],
    ['when deferral is switched off', { defersCleanup: false }],
  ] as const) {
    it(`removes at once ${when}`, async () => {
      await begin(options);
      void answerChanges(200, 3);
      await runner.stop('done-1');
      expect(changes).to.have.length(3);
    });
  }
});
