import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { finalizer } from '../../src/runners/kubernetes/labels.ts';
import { releaseWorkers } from '../../src/runners/kubernetes/release-workers.ts';
import { startFakeApiServer } from '../support/cluster/fake-api-server.ts';
import { aFolder } from '../support/redis.ts';

describe('the release of workers before trawl is removed', () => {
  for (const conflict of ['DELETE', 'PATCH']) {
    it(`repeats what a conflict kept from a pod: its ${conflict}`, async () => {
      const server = await startFakeApiServer();
      const { folder, remove } = aFolder();
      const kubeconfig = join(folder, 'kubeconfig');
      const named = (name: string, more: object) => ({ name, ...more });
      const config = {
        'current-context': 'a',
        contexts: [named('a', { context: { cluster: 'a', user: 'a' } })],
        clusters: [named('a', { cluster: { server: server.url, 'insecure-skip-tls-verify': true } })],
        users: [named('a', { user: {} })],
      };
      writeFileSync(kubeconfig, JSON.stringify(config));
      try {
        const pod: Record<string, unknown> = { name: 'pod', uid: '1', finalizers: [finalizer] };
        const answers = async (path: string, status: number, items: readonly object[] = []) => {
          const asked = await server.next();
          expect(asked.path.replace(/.*\/films\//, '')).to.equal(path);
          asked.answer(status, { items });
        };
        const released = releaseWorkers({ KUBECONFIG: kubeconfig }, 'films', null);
        await answers('jobs', 200);
        await answers('pods', 200, [{ metadata: pod }]);
        // The client tells no conflict from an object that another one has replaced.
        await answers('pods/pod', conflict === 'DELETE' ? 409 : 200);
        await answers('pods/pod', conflict === 'PATCH' ? 409 : 200);
        await answers('jobs', 200);
        const left = conflict === 'DELETE' ? { ...pod, finalizers: [] } : { ...pod, deletionTimestamp: 'now' };
        await answers('pods', 200, [{ metadata: left }]);
        await answers('pods/pod', 200);
        if (conflict === 'PATCH') await answers('pods/pod', 200);
        await answers('jobs', 200);
        await answers('pods', 200);
        expect(await released).to.equal(1);
      } finally {
        await server.stop();
        remove();
      }
    });
  }
});
