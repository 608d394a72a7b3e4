import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { type Client, openClient } from '../../src/runners/kubernetes/kube-client.ts';
import { type KubernetesRunner, openKubernetesRunner } from '../../src/runners/kubernetes/kubernetes-runner.ts';
import { makePace } from '../../src/runners/kubernetes/rate-limiter.ts';
import { finalizer, jobLabel } from '../../src/runners/kubernetes/snapshot.ts';
import { aShape } from '../support/cluster/runner.ts';
import { type Asked, type StandIn, startStandIn } from '../support/cluster/stand-in.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const job = (name: string) => ({
  metadata: { name, uid: `job-${name}`, resourceVersion: '5', finalizers: [finalizer] },
});
const pod = (attempt: string, phase: string) => ({
  metadata: {
    ...{ name: `${attempt}-x`, uid: `pod-${attempt}`, resourceVersion: '6', finalizers: [finalizer] },
    labels: { [jobLabel]: attempt },
  },
  status: { phase },
});
const listOf = (...items: object[]) => ({ items, metadata: { resourceVersion: '9' } });

describe('an attempt that is let go later', function () {
  this.timeout(120_000);
  let server: StandIn;
  let client: Client;
  let runner: KubernetesRunner;
  let changes: Asked[];
  const { log } = aLog();
  const usualNow = performance.now;

  /** Lets the pod of `late-1` come late, while `other-1` still waits for its own. */
  async function begin({ queue = null as string | null, isSpent = false } = {}): Promise<void> {
    const access = { server: server.url, tls: {}, headers: async () => ({}) };
    const pace = { ...makePace(1_000, 1_000, () => performance.now()), isSpent: () => isSpent };
    client = openClient({ access, pace });
    const shape = { ...aShape('workers'), queue };
    runner = openKubernetesRunner({ client, shape, now: Date.now, metrics: makeMetrics(), log });
    let pods: Asked | undefined;
    for (let answered = 0; answered < 4; answered++) {
      const asked = await server.next();
      const isOfPods = asked.path.endsWith('/pods');
      if (asked.query.get('watch') === 'true') pods = isOfPods ? asked : pods;
      else
        asked.say(
          200,
          isOfPods ? listOf(pod('done-1', 'Succeeded')) : listOf(...['done-1', 'late-1', 'other-1'].map(job)),
        );
    }
    performance.now = () => usualNow.call(performance) + 1_000;
    pods?.go(`${JSON.stringify({ type: 'ADDED', object: pod('late-1', 'Pending') })}\n`);
    await until(() => runner.view.podsOf('late-1').length > 0, 5, 'the late pod is seen');
  }
  /** Answers changes as they come. */
  async function answerChanges(status: number, count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      const asked = await server.next();
      changes.push(asked);
      asked.say(status, {});
    }
  }

  beforeEach(async () => {
    server = await startStandIn();
    changes = [];
  });
  afterEach(async () => {
    performance.now = usualNow;
    await runner.close();
    await client.close();
    await server.stop();
  });

  it('stays out of sight until then, however long: the next attempt of its job begins meanwhile', async () => {
    await begin();
    await runner.stop('done-1');
    expect(await runner.list('done')).to.deep.equal([]);
    performance.now = () => usualNow.call(performance) + 100_000;
    expect(await runner.list('done')).to.deep.equal([]);
    await answerChanges(200, 3);
    await until(async () => (await runner.list('done')).length === 0, 5, 'it is gone');
  });

  it('is told of and seen again when it cannot be let go', async () => {
    await begin();
    const told: string[] = [];
    runner.watch((name) => told.push(name));
    await runner.stop('done-1');
    performance.now = () => usualNow.call(performance) + 100_000;
    await answerChanges(500, 1);
    await until(() => told.includes('done-1'), 5, 'it is told');
    expect(await runner.list('done')).to.deep.equal(['done-1']);
  });

  it('is let go at once where a queue of Kueue counts it', async () => {
    await begin({ queue: 'media' });
    void answerChanges(200, 3);
    await runner.stop('done-1');
    expect(changes).to.have.length(3);
  });

  it('is let go at once where our own requests have to wait', async () => {
    await begin({ isSpent: true });
    void answerChanges(200, 3);
    await runner.stop('done-1');
    expect(changes).to.have.length(3);
  });
});
