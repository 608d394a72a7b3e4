import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { openKubeClient } from '../../src/runners/kubernetes/kube-client.ts';
import { KubernetesRunner } from '../../src/runners/kubernetes/kubernetes-runner.ts';
import { makeRateLimiter } from '../../src/runners/kubernetes/rate-limiter.ts';
import { type FakeApiServer, startFakeApiServer } from '../support/cluster/fake-api-server.ts';
import { aShape } from '../support/cluster/runner.ts';
import { aLog } from '../support/redis.ts';

const name = '0e9d6f0c-6a2f-4d2b-9a34-6f1f3a0b7c11-1';
const secondsAgo = (seconds: number) => `${new Date(Date.now() - seconds * 1000).toISOString().slice(0, 19)}Z`;

const refused = 'pods "x" is forbidden: serviceaccount not found';
const overQuota = 'pods "x" is forbidden: exceeded quota: none';

describe('a Job whose pod is refused after its quota was used up', () => {
  let said: { message: string; lastTimestamp: string }[];
  let laterMs: number;
  let server: FakeApiServer;
  let runner: KubernetesRunner;

  beforeEach(async () => {
    server = await startFakeApiServer();
    laterMs = 0;
    const access = { server: server.url, tls: async () => ({}), headers: async () => ({}) };
    const client = openKubeClient({ access, rateLimit: makeRateLimiter(1_000, 1_000, () => performance.now()) });
    const [shape, metrics, { log }] = [{ ...aShape('workers'), startSeconds: 180 }, makeMetrics(), aLog()];
    runner = new KubernetesRunner({ client, shape, now: () => Date.now() + laterMs, metrics, log });
  });
  afterEach(async () => {
    await runner.close();
    await server.stop();
  });

  /** Answers the questions of one look at the attempt. */
  const look = async () => {
    const seen = runner.see(name);
    const answered = (async () => {
      const job = { metadata: { name, uid: 'one', resourceVersion: '5', creationTimestamp: secondsAgo(1_000) } };
      for (;;) {
        const asked = await server.next();
        if (asked.query.get('watch') === 'true') continue;
        if (asked.path.endsWith(name)) asked.answer(200, job);
        else if (asked.path.endsWith('/events')) return asked.answer(200, { items: said });
        else {
          const items = asked.path.endsWith('/jobs') ? [job] : [];
          asked.answer(200, { items, metadata: { resourceVersion: '9' } });
        }
      }
    })();
    await answered;
    return (await seen).is;
  };

  for (const [seconds, is] of [
    [100, 'waiting'],
    [200, 'ended'],
  ] as const) {
    it(`is seen as one that is ${is} ${seconds} s after the quota kept it waiting for the last time`, async () => {
      said = [
        { message: refused, lastTimestamp: secondsAgo(1) },
        { message: overQuota, lastTimestamp: secondsAgo(seconds) },
      ];
      expect(await look()).to.equal(is);
    });
  }

  it('waits from its last refusal for the quota on, although Kubernetes has written the next one over its event', async () => {
    const first = { message: overQuota, lastTimestamp: secondsAgo(900) };
    const combined = (message: string) => ({
      message: `(combined from similar events): Error creating: ${message}`,
      lastTimestamp: secondsAgo(1),
    });
    said = [first, combined(overQuota)];
    expect(await look()).to.equal('waiting');
    said = [first, combined(refused)];
    laterMs = 100_000;
    expect(await look()).to.equal('waiting');
    laterMs = 200_000;
    expect(await look()).to.equal('ended');
  });
});
