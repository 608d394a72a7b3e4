import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { openKubeClient } from '../../src/runners/kubernetes/kube-client.ts';
import { KubernetesRunner } from '../../src/runners/kubernetes/kubernetes-runner.ts';
import { makeRateLimiter } from '../../src/runners/kubernetes/rate-limiter.ts';
import { startFakeApiServer } from '../support/cluster/fake-api-server.ts';
import { aShape } from '../support/cluster/runner.ts';
import { aLog } from '../support/redis.ts';

const name = '0e9d6f0c-6a2f-4d2b-9a34-6f1f3a0b7c11-1';
const secondsAgo = (seconds: number) => `${new Date(Date.now() - seconds * 1000).toISOString().slice(0, 19)}Z`;

describe('a Job whose pod is refused after its quota was used up', () => {
  for (const [seconds, is] of [
    [100, 'waiting'],
    [200, 'ended'],
  ] as const) {
    it(`is seen as one that is ${is} ${seconds} s after the quota kept it waiting for the last time`, async () => {
      const server = await startFakeApiServer();
      const answered = (async () => {
        const job = { metadata: { name, uid: 'one', resourceVersion: '5', creationTimestamp: secondsAgo(1_000) } };
        const said = [
          { message: 'pods "x" is forbidden: serviceaccount not found', lastTimestamp: secondsAgo(1) },
          { message: 'pods "x" is forbidden: exceeded quota: none', lastTimestamp: secondsAgo(seconds) },
        ];
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
      const access = { server: server.url, tls: async () => ({}), headers: async () => ({}) };
      const client = openKubeClient({ access, rateLimit: makeRateLimiter(1_000, 1_000, () => performance.now()) });
      const [shape, metrics, { log }] = [{ ...aShape('workers'), startSeconds: 180 }, makeMetrics(), aLog()];
      const runner = new KubernetesRunner({ client, shape, now: Date.now, metrics, log });
      try {
        expect((await runner.see(name)).is).to.equal(is);
        await answered;
      } finally {
        await runner.close();
        await server.stop();
      }
    });
  }
});
