import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { chart, runTool } from '../support/chart.ts';
import { refusal } from '../support/cluster/chart-objects.ts';
import { startCluster } from '../support/cluster/cluster.ts';
import { apply, kubectl } from '../support/cluster/kubectl.ts';
import { freePort } from '../support/free-port.ts';
import { aFolder, startNode } from '../support/redis.ts';
import { renderRedisPod } from '../support/redis-pod.ts';
import { tool } from '../support/tools.ts';
import { read, root } from '../support/tree.ts';
import { files } from '../support/tree-files.ts';

/** Claim as the controller of StatefulSets makes it, in a storage class that lets volumes grow. */
const claim = {
  ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
  metadata: { name: 'data-trawl-redis-0', namespace: 'trawl' },
  spec: {
    ...{ accessModes: ['ReadWriteOnce'], storageClassName: 'growing', volumeName: 'volume' },
    resources: { requests: { storage: '8Gi' } },
  },
};
const storageClass = {
  ...{ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name: 'growing' } },
  ...{ provisioner: 'example.com/disk', allowVolumeExpansion: true },
};

describe('the Redis of the chart', () => {
  it('has in its pod the programs of the runbooks and the password that they need', async () => {
    const runbooks = files.filter((path) => path.startsWith('docs/runbooks/')).map(read);
    const commands = runbooks.flatMap((page) =>
      [...page.matchAll(/kubectl exec statefulset\/trawl-redis -- ([^\n`]+)/g)].map(([, command]) =>
        command!.split(' '),
      ),
    );
    expect(commands).to.have.length.greaterThan(4);
    const { programs, env, configuration } = renderRedisPod();
    const { folder, remove } = aFolder();
    const password = join(folder, 'password.conf');
    writeFileSync(password, configuration);
    const [, secret = ''] = /^requirepass (\S+)$/m.exec(configuration) ?? [];
    const redis = await startNode(folder, await freePort(), ['--include', password], { secret });
    try {
      for (const [program = '', ...words] of commands) {
        expect(programs).to.include(program);
        const asked = ['-p', String(redis.port), '-e', ...words];
        await runTool(program, asked, { env: { ...env, PATH: process.env.PATH } });
      }
    } finally {
      await redis.process.stop();
      remove();
    }
  });

  it('gets a larger volume by the commands of the guide, word for word, where an upgrade alone is refused', async () => {
    const cluster = await startCluster();
    const { folder, remove } = aFolder();
    try {
      const words = ['trawl', chart, '--namespace', 'trawl', '--values', join(chart, 'values-try.yaml')];
      const homes = { HOME: folder, HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder };
      const PATH = `${['helm', 'kubectl'].map((name) => dirname(tool(name))).join(':')}:${process.env.PATH}`;
      const env = { PATH, KUBECONFIG: cluster.kubeconfig, KUBECACHEDIR: '/dev/null', ...homes };
      await runTool(tool('helm'), ['install', ...words, '--create-namespace'], { env });
      await apply(cluster, storageClass, claim);
      const bound = JSON.stringify({ status: { phase: 'Bound', capacity: { storage: '8Gi' } } });
      const ofClaim = ['persistentvolumeclaim', claim.metadata.name, '-n', 'trawl'];
      await kubectl(cluster, ['patch', ...ofClaim, '--subresource=status', '-p', bound]);
      const larger = ['upgrade', ...words, '--set', 'redis.bundled.storage=16Gi'];
      expect(await refusal(runTool(tool('helm'), larger, { env }))).to.match(/updates to statefulset spec.*forbidden/i);
      const [, section = ''] = read('docs/install.md').split('### Larger volume of the bundled Redis\n');
      const [, commands = ''] = /^```\n([\s\S]*?)^```$/m.exec(section) ?? [];
      await runTool('bash', ['--norc', '-euo', 'pipefail', '-c', commands], { cwd: root, env });
      const size = ['-o', 'jsonpath={.spec.resources.requests.storage}'];
      expect(await kubectl(cluster, ['get', ...ofClaim, ...size])).to.equal('16Gi');
      const ofSet = ['statefulset', 'trawl-redis', '-n', 'trawl', '-o'];
      expect(await kubectl(cluster, ['get', ...ofSet, 'jsonpath={.spec.volumeClaimTemplates[0].spec}'])).to.include(
        '16Gi',
      );
    } finally {
      await cluster.stop();
      remove();
    }
  });
});
