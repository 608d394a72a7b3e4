import { loadAllYaml } from '@kubernetes/client-node/dist/yaml.js';
import { expect } from 'chai';
import { manifestsHelp, runCommand as runManifests } from '../../src/admin/manifests.ts';
import { readConfig } from '../../src/base/config.ts';
import { listManifests } from '../../src/runners/kubernetes/namespace-manifests.ts';
import { podShapeOf } from '../../src/runners/kubernetes/pod-shape.ts';

const env = {
  TRAWL_WORKER_IMAGE: 'registry.example/trawl-worker:1',
  TRAWL_KUBE_NAMESPACE: 'workers',
  TRAWL_GATEWAY_ADDRESS: 'http://controller.trawl:8085',
  TRAWL_EGRESS_ADDRESS: 'http://egress.trawl:8086',
  TRAWL_WORKERS: '500',
  TRAWL_WORKER_MEMORY: '3Gi',
};

async function print(args: readonly string[], settings: Readonly<Record<string, string>> = env) {
  const seen = { out: '', err: '' };
  const code = await runManifests(args, {
    out: (text) => (seen.out += text),
    err: (text) => (seen.err += text),
    isWatched: false,
    env: settings,
  });
  return { ...seen, code };
}

describe('trawl manifests', () => {
  const shapeIn = (namespace: string) => {
    const config = readConfig({ ...env, TRAWL_KUBE_NAMESPACE: namespace });
    return podShapeOf(config);
  };

  it('prints YAML of exactly the objects that guard the namespace of the settings', async () => {
    const { code, out, err } = await print([]);
    expect({ code, err }).to.deep.equal({ code: 0, err: '' });
    const ways = { namespace: 'workers', gatewayPort: 8085, egressPort: 8086, stores: [] };
    expect(loadAllYaml(out)).to.deep.equal(listManifests(shapeIn('workers'), ways, 2_500));
    expect(loadAllYaml(out).map(({ kind }) => kind)).to.deep.equal([
      'Role',
      'RoleBinding',
      'ResourceQuota',
      'LimitRange',
      'NetworkPolicy',
      'NetworkPolicy',
      'ValidatingAdmissionPolicy',
      'ValidatingAdmissionPolicyBinding',
    ]);
  });

  it('prints the namespaces, the quota and the object stores that its options name', async () => {
    const names = ['--namespace', 'films', '--controller-namespace=trawl', '--max-jobs', '7'];
    const { code, out } = await print([...names, '--store', '10.0.0.7/32:9000', '--store=[fd00::]/8:443']);
    expect(code).to.equal(0);
    const stores = [
      { cidr: '10.0.0.7/32', port: 9000 },
      { cidr: 'fd00::/8', port: 443 },
    ];
    const ways = { namespace: 'trawl', gatewayPort: 8085, egressPort: 8086, stores };
    expect(loadAllYaml(out)).to.deep.equal(listManifests(shapeIn('films'), ways, 7));
  });

  it('allows Jobs for any number of workers, without a word about an option that was not given', async () => {
    const { code, out, err } = await print([], { ...env, TRAWL_WORKERS: '9999000' });
    expect({ code, err }).to.deep.equal({ code: 0, err: '' });
    expect(out).to.include('10001000');
  });

  it('lets workers reach the object store that the chart installs beside the controller', async () => {
    const { out } = await print(['--controller-namespace', 'trawl', '--bundled-store', '7070']);
    const ways = { namespace: 'trawl', gatewayPort: 8085, egressPort: 8086, stores: [], bundledStorePort: 7070 };
    expect(loadAllYaml(out)).to.deep.equal(listManifests(shapeIn('workers'), ways, 2_500));
    expect(out).to.include('app.kubernetes.io/component: s3');
    expect((await print(['--bundled-store', '65536'])).err).to.match(/^--bundled-store must be a port/);
  });

  it('lets in what its options allow: other images, values of fields and marks', async () => {
    const { code, out } = await print([
      ...['--image', 'registry.example/trawl-worker:0', '--image', 'local/worker'],
      ...['--allow', 'nodeSelector={"pool":"films"}', '--allow', 'worker.resources={"limits":{"cpu":"2"}}'],
      ...['--allow-mark', 'kubernetes.io/limit-ranger'],
    ]);
    expect(code).to.equal(0);
    const ways = { namespace: 'workers', gatewayPort: 8085, egressPort: 8086, stores: [] };
    const allowances = {
      images: ['registry.example/trawl-worker:0', 'local/worker'],
      fields: [
        { name: 'nodeSelector', value: { pool: 'films' } },
        { name: 'worker.resources', value: { limits: { cpu: '2' } } },
      ],
      marks: ['kubernetes.io/limit-ranger'],
    };
    expect(loadAllYaml(out)).to.deep.equal(listManifests(shapeIn('workers'), ways, 2_500, allowances));
  });

  it('refuses wrong options with exit code 2, and missing settings with 1', async () => {
    const wrong = [
      ['--max-jobs', '0'],
      ['--max-jobs', '1e3'],
      ['--store', '10.0.0.7:9000'],
      ['--store', '10.0.0.7/33:9000'],
      ['--store', '10.0.0.7/32:65536'],
      ['--store', '999.0.0.1/8:1'],
      ['--allow', 'nodeSelector'],
      ['--allow', 'nodeSelector={pool}'],
      ['--allow', 'a.b.c=1'],
      ['--nonsense'],
      ['nonsense'],
    ];
    for (const args of wrong) {
      const { code, out, err } = await print(args);
      expect({ code, out }, args.join(' ')).to.deep.equal({ code: 2, out: '' });
      expect(err).to.match(/\nUsage: trawl manifests /);
    }
    const { TRAWL_WORKER_IMAGE: _, ...without } = env;
    expect(await print([], without)).to.deep.equal({
      code: 1,
      out: '',
      err: 'TRAWL_WORKER_IMAGE is required here.\n',
    });
  });

  it('refuses a gateway that is a socket of this machine, because pods cannot reach it', async () => {
    const { code, err } = await print([], { ...env, TRAWL_GATEWAY_ADDRESS: 'unix:/run/gateway' });
    expect(code).to.equal(2);
    expect(err).to.match(/^TRAWL_GATEWAY_ADDRESS must be http:\/\/host:port/);
  });

  it('shows its help without settings', async () => {
    expect(await print(['--help'], {})).to.deep.equal({ code: 0, out: manifestsHelp, err: '' });
  });
});
