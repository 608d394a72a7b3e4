import { expect } from 'chai';
import { checkCluster } from '../../src/admin/check-cluster.ts';
import { checkPolicies } from '../../src/admin/check-policies.ts';
import { readConfig } from '../../src/base/config.ts';
import { listManifests } from '../../src/runners/kubernetes/namespace-manifests.ts';
import { podShapeOf } from '../../src/runners/kubernetes/pod-shape.ts';
import { type Cluster, startCluster } from '../support/cluster/cluster.ts';
import { startFakeKubelet } from '../support/cluster/fake-kubelet.ts';
import { apply, kubectl } from '../support/cluster/kubectl.ts';
import { endings } from '../support/cluster/pod.ts';
import { makeWorkerPod, writeControllerConfig } from '../support/cluster/worker-namespace.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';

const namespace = 'workers';
const settings = {
  TRAWL_RUNNER: 'kubernetes',
  TRAWL_OBJECTS: 's3',
  TRAWL_S3_BUCKET: 'films',
  TRAWL_KUBE_NAMESPACE: namespace,
  TRAWL_WORKER_IMAGE: 'local.test/worker:1',
  TRAWL_GATEWAY_ADDRESS: 'http://gateway.media.svc:8082',
  TRAWL_EGRESS_ADDRESS: 'http://egress.media.svc:4750',
};
const configOf = (more: object = {}) => readConfig({ ...settings, ...more });

describe('the doctor beside a real API server', () => {
  const { folder, remove } = aFolder();
  let cluster: Cluster;
  let env: Record<string, string>;
  before(async () => {
    cluster = await startCluster();
    await kubectl(cluster, ['create', 'namespace', namespace]);
    for (const name of ['trawl-controller', 'trawl-worker', 'stranger']) {
      await kubectl(cluster, ['create', 'serviceaccount', name, '-n', namespace]);
    }
    const ways = { namespace, gatewayPort: 8082, egressPort: 4750, stores: [] };
    await apply(cluster, ...listManifests(podShapeOf(configOf()), ways, 100));
    env = { KUBECONFIG: await writeControllerConfig(cluster, namespace, folder) };
    await until(async () => (await wrong()).length === 0, 20, 'the namespace is guarded');
  });
  after(async () => {
    await cluster?.stop();
    remove();
  });

  const wrong = async (config = configOf(), way = env) =>
    (await checkCluster(config, way)).filter(({ level }) => level !== 'ok').map(({ text }) => text);

  it('finds nothing wrong with what trawl manifests makes', async () => {
    const findings = await checkCluster(configOf(), env);
    expect(findings.map(({ level, text }) => `${level}: ${text}`)).to.deep.equal([
      'ok: The controller may do all it needs in workers.',
      'ok: The cluster publishes the keys of its tokens, which https://kubernetes.default.svc issues.',
      'ok: workers lets in workers.',
      'ok: workers refuses pods that are no workers.',
      'ok: No worker waits for its image.',
    ]);
    expect(await kubectl(cluster, ['get', 'jobs', '-n', namespace, '-o', 'name'])).to.equal('');
  });

  it('names the rights that are missing, and a cluster that cannot be found', async () => {
    const access = { KUBECONFIG: cluster.kubeconfigOf({ name: `system:serviceaccount:${namespace}:stranger` }) };
    expect((await wrong(configOf(), access)).join()).to.match(
      /^The controller may not do, in workers: create jobs, .*\. Apply the Role of the chart or of trawl manifests\.$/,
    );
    expect((await wrong(configOf(), {})).join()).to.match(/^The cluster cannot be found: /);
  });

  it('names the keys of tokens that the controller may not read, without which it would let in no worker', async () => {
    const path = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:service-account-issuer-discovery';
    const binding = await cluster.admin.ask<{ metadata: object }>('GET', path);
    await cluster.admin.ask('DELETE', path);
    try {
      await until(async () => (await wrong()).length > 0, 20, 'the right is gone');
      const [said] = await wrong();
      expect(said).to.match(
        /^No worker would be let in by the controller: GET \/\S+ was answered with 403: .*\. Bind the ClusterRole system:service-account-issuer-discovery to the group system:serviceaccounts, as Kubernetes does\.$/,
      );
    } finally {
      const { metadata: _, ...rest } = binding;
      const metadata = { name: 'system:service-account-issuer-discovery' };
      await cluster.admin.ask('POST', path.slice(0, path.lastIndexOf('/')), { ...rest, metadata });
      await until(async () => (await wrong()).length === 0, 20, 'the right is back');
    }
  });

  it('does not say that pods are let in where the server refuses them for another reason than the admission policy', async () => {
    const said = await wrong(configOf({ TRAWL_KUBE_NAMESPACE: 'gone' }), { KUBECONFIG: cluster.kubeconfig });
    expect(said).to.have.length(2);
    expect(said[0]).to.match(/^gone refuses a worker: .*namespaces "gone" not found\.$/);
    expect(said[1]).to.match(/^gone refuses a pod with any image, but not by the admission policy: .*not found\.$/);
  });

  it('repeats why a worker of the settings would be refused', async () => {
    const said = await wrong(configOf({ TRAWL_WORKER_IMAGE: 'local.test/worker:2' }));
    expect(said.join()).to.match(/^workers refuses a worker: .*trawl: only the image of workers/);
  });

  it('says which image a pod waits for, and on which node', async () => {
    const pod = makeWorkerPod('waits', podShapeOf(configOf()));
    const path = `/api/v1/namespaces/${namespace}/pods`;
    await cluster.admin.ask('POST', path, pod);
    const state = { waiting: { reason: 'ImagePullBackOff', message: 'Back-off pulling image "local.test/worker:1"' } };
    const status = {
      containerStatuses: [{ name: 'worker', image: '', imageID: '', ready: false, restartCount: 0, state }],
    };
    const type = 'application/merge-patch+json';
    await cluster.admin.ask('PATCH', `${path}/${pod.metadata.name}/status`, { status }, type);
    expect((await wrong()).join()).to.match(/^local\.test\/worker:1 cannot be pulled on .*: Back-off pulling image/);
    await kubectl(cluster, ['delete', 'pod', '-n', namespace, pod.metadata.name, '--force', '--grace-period=0']);
  });

  it('has a worker pod try the network, whose answer it repeats, and leaves no Job', async () => {
    const kubelet = await startFakeKubelet(cluster, {
      plan: ({ spec }) => ({ runMs: 1, ending: endings.success(answers.get(spec.containers[0]?.args?.[2] ?? '')) }),
    });
    const answers = new Map([
      ['inspector.media.svc:8083', '{"missed":[],"open":["inspector.media.svc:8083"],"kernel":"6.1.9"}'],
      ['closed.media.svc:8083', '{"missed":["http://egress:1"],"open":[],"kernel":"6.12.1"}'],
      ['[fd00::7]:8083', '{"missed":[],"open":[],"kernel":"6.1.9"}'],
    ]);
    const tried = (host: string) =>
      checkPolicies(configOf({ TRAWL_INSPECTOR_ADDRESS: `http://${host}:8083` }), env, 120);
    try {
      const { level, text } = await tried('inspector.media.svc');
      expect([level, text].join()).to.match(
        /^problem,The cluster does not enforce .* a worker pod reaches inspector\.media\.svc:8083, .* Linux 6\.7 \(that of this pod's node is 6\.1\.9\),/,
      );
      expect((await tried('[fd00::7]')).text).to.match(/^The cluster enforces network policies: a worker pod reaches/);
      expect((await tried('closed.media.svc')).text).to.match(
        /^A worker pod does not reach http:\/\/egress:1, so no download can run/,
      );
      expect((await tried('other')).text).to.match(
        /^No worker pod could try the network: it ended with 0 \(Completed\)/,
      );
    } finally {
      await kubelet.stop();
    }
    expect(await kubectl(cluster, ['get', 'jobs', '-n', namespace, '-o', 'name'])).to.equal('');
  });

  it('says why no worker pod could try the network', async () => {
    const TRAWL_INSPECTOR_ADDRESS = 'http://inspector.media.svc:8083';
    const refused = configOf({ TRAWL_INSPECTOR_ADDRESS, TRAWL_WORKER_IMAGE: 'local.test/worker:2' });
    expect((await checkPolicies(refused, env)).text).to.match(
      /^No worker pod could try the network: the cluster refuses it: .*trawl: only the image of workers/,
    );
    const late = await checkPolicies(configOf({ TRAWL_INSPECTOR_ADDRESS }), env, 1);
    expect(late.text).to.match(/: it has not run within 1 s \(.+\)\.$/);
    expect((await checkPolicies(configOf(), env)).text).to.match(/^TRAWL_INSPECTOR_ADDRESS names no Service/);
  });

  it('says that the namespace lets in other pods once its policy is gone', async () => {
    await kubectl(cluster, ['delete', 'validatingadmissionpolicybinding', '--all']);
    const open = async () => (await wrong()).join();
    await until(async () => (await open()) !== '', 20, 'the namespace is open');
    expect(await open()).to.match(/^workers lets in pods with any image: apply the admission policy/);
  });
});
