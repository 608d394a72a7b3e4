import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { makeJob } from '../../src/runners/kubernetes/job-manifest.ts';
import { releaseWorkers } from '../../src/runners/kubernetes/release-workers.ts';
import { takeLead } from '../../src/store/jobs/leadership.ts';
import { keys } from '../../src/store/keys.ts';
import { chart, type Rendering, render, runTool, scenarios } from '../support/chart.ts';
import { closeNamespace, defineForeignKinds, dryRun, letIn, refusal } from '../support/cluster/chart-objects.ts';
import { type Cluster, makeNamespace, startCluster } from '../support/cluster/cluster.ts';
import { writeKubeSchemas } from '../support/cluster/kube-schemas.ts';
import { kubectl } from '../support/cluster/kubectl.ts';
import { attemptName } from '../support/cluster-objects.ts';
import type { Json } from '../support/json.ts';
import { trawl } from '../support/operator.ts';
import { readPreparation, runInBash } from '../support/procedures.ts';
import { admitted, anAccount, storeOf } from '../support/record.ts';
import { aFolder, startTestServer } from '../support/redis.ts';
import { tool } from '../support/tools.ts';
import { read, root } from '../support/tree.ts';
import { until } from '../support/until.ts';

/** Kinds of others, which a cluster knows by the definitions that they publish. */
const foreign = ['HTTPRoute', 'PodMonitor', 'PrometheusRule', 'Certificate'];
const namespaces = ['media', 'media-workers', 'films'];
const administrator = 'system:serviceaccount:media:trawl-controller';
/** No pod runs here, so nothing is waited for, tested, read or entered. */
const withoutPods = `
helm() {
  local words=()
  for word; do [ "$word" = --wait ] && words+=(--no-hooks) || words+=("$word"); done
  [ "$1" = test ] || command helm "\${words[@]}"
}
kubectl() { case " $* " in *' logs '*|*' exec '*) ;; *) command kubectl "$@" ;; esac; }
`;

describe('the chart on a real API server', () => {
  let cluster: Cluster;
  const { folder, remove } = aFolder();

  before(async () => {
    cluster = await startCluster();
    for (const name of namespaces) await makeNamespace(cluster, name);
    await defineForeignKinds(cluster);
    await until(isDescribed, 20, 'the server describes the kinds of others');
  });
  after(async () => {
    await cluster?.stop();
    remove();
  });

  const openapi = () => cluster.admin.ask('GET', '/openapi/v2');
  const isDescribed = async () => {
    const names = Object.keys((await openapi()).definitions);
    return foreign.every((kind) => names.some((name) => name.endsWith(`.${kind}`)));
  };
  const written = (scenario: (typeof scenarios)[number], change: (objects: Json[]) => void = () => undefined) => {
    const items = render({ scenario });
    change(items);
    const file = join(folder, `${scenario.replaceAll('/', '-')}.json`);
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    return { file, items };
  };

  it('has no field in any scenario that the server does not know', async () => {
    const schemas = join(folder, 'schemas');
    expect(writeKubeSchemas(schemas, await openapi())).to.be.greaterThan(80);
    const location = ['-schema-location', `${schemas}/{{.ResourceKind}}{{.KindSuffix}}.json`];
    const judge = (...given: string[]) => runTool(tool('kubeconform'), ['-strict', '-summary', ...location, ...given]);
    const { stdout } = await judge(...scenarios.map((scenario) => written(scenario).file));
    expect(stdout).to.match(/Valid: \d{3}, Invalid: 0, Errors: 0/);
    const wrong = written('ci/least-values.yaml', (items) => {
      items.find(({ kind }) => kind === 'Deployment')!.spec.template.spec.enableServiceLink = false;
    });
    const said = await judge(wrong.file).catch(({ stdout: out }) => out);
    expect(said).to.match(/enableServiceLink/);
  });

  const made: readonly Rendering[] = [
    ...scenarios.map((scenario) => ({ scenario })),
    { scenario: 'values-try.yaml', release: 'r'.repeat(53) },
  ];
  for (const rendering of made) {
    it(`would be made by the server with ${rendering.scenario} as ${rendering.release ?? 'trawl'}`, async () => {
      const items = render(rendering);
      expect(await dryRun(cluster, items)).to.have.length(items.length);
    });
  }

  it('lets in the workers of its controller, with what it allows, and nothing else', async () => {
    const { judge } = await closeNamespace(cluster, {
      values: {
        imagePullSecrets: [{ name: 'registry' }],
        'workers.extraImages': ['trawl-worker:0.0.9'],
        'workers.extraMarks': ['example.com/mesh'],
      },
    });
    expect(await judge()).to.equal(letIn);
    expect(await judge((_, worker) => (worker.image = 'trawl-worker:0.0.9'))).to.equal(letIn);
    expect(await judge((_, worker) => (worker.image = 'other:1'))).to.include('trawl: only the image');
    expect(await judge((_, __, { annotations }) => (annotations['example.com/mesh'] = 'x'))).to.equal(letIn);
    expect(await judge((_, __, { annotations }) => (annotations.other = 'x'))).to.include('only the annotations');
    expect(await judge((pod) => (pod.imagePullSecrets = [{ name: 'registry' }]))).to.equal(letIn);
    expect(await judge((pod) => (pod.imagePullSecrets = [{ name: 'other' }]))).to.include('only the imagePullSecrets');
    expect(await judge((_, worker) => worker.env.push({ name: 'A', value: 'b' }))).to.include('only the env');
    expect(await judge((_, worker) => (worker.resources.limits.memory = '4Gi'))).to.match(/maximum memory|resources/);
    const binding = await cluster.admin.ask('GET', '/api/v1/namespaces/media-workers/limitranges/trawl-workers');
    expect(binding.spec.limits[0].max.memory).to.equal('3Gi');
  });

  it('is upgraded with a doctor among its values, which runs anew with the settings that were changed', async () => {
    const homes = { HOME: folder, HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder };
    const env = { PATH: process.env.PATH, KUBECONFIG: cluster.kubeconfig, ...homes };
    const words = ['judged', chart, '--values', join(chart, 'ci/least-values.yaml'), '--namespace', 'judged'];
    const judged = [...words, '--set', 'doctor.enabled=true'];
    await runTool(tool('helm'), ['install', ...judged, '--create-namespace'], { env });
    for (const level of ['debug', 'warn'])
      await runTool(tool('helm'), ['upgrade', ...judged, '--set', `settings.TRAWL_LOG_LEVEL=${level}`], { env });
    const { items } = await cluster.admin.ask('GET', '/apis/batch/v1/namespaces/judged/jobs');
    const kept = items.filter(({ metadata }: Json) => metadata.deletionTimestamp === undefined);
    expect(kept.map(({ metadata }: Json) => metadata.name)).to.deep.equal(['judged-doctor-3']);
    const [{ env: settings }] = kept[0].spec.template.spec.containers;
    expect(settings).to.deep.include({ name: 'TRAWL_LOG_LEVEL', value: 'warn' });
  });

  it('takes the commands of the guide for a managed cluster, accounts and the doctor, word for word', async () => {
    const section = (heading: string) =>
      read('docs/install.md')
        .split(/^## /m)
        .find((text) => text.startsWith(heading))!;
    const commands = ['A managed cluster', 'Accounts, keys', 'When something is wrong'].flatMap((heading) =>
      [...section(heading).matchAll(/^( *)```\n([\s\S]*?)^ *```$/gm)].map(([, indent, text = '']) =>
        text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
      ),
    );
    expect(commands).to.have.length(8);
    const guide = join(folder, 'guide');
    mkdirSync(guide);
    for (const name of ['charts', 'trawl']) symlinkSync(join(root, name), join(guide, name));
    const backup = 'backup: {existingClaim: trawl-backups}\n';
    writeFileSync(join(guide, 'my-values.yaml'), read('charts/trawl/values-ha.yaml') + backup);
    const env = {
      ...{
        HOME: guide,
        HELM_CACHE_HOME: guide,
        HELM_CONFIG_HOME: guide,
        HELM_DATA_HOME: guide,
        KUBECACHEDIR: '/dev/null',
      },
      ...{
        PATH: `${['helm', 'kubectl'].map((name) => dirname(tool(name))).join(':')}:${process.env.PATH}`,
        KUBECONFIG: cluster.kubeconfig,
      },
    };
    const script = [withoutPods, ...commands, 'command helm uninstall trawl -n trawl --no-hooks'].join('\n');
    await runTool('bash', ['--norc', '-euo', 'pipefail', '-c', script], { cwd: guide, env });
    const left = await kubectl(cluster, ['get', 'secrets,pvc', '-n', 'trawl', '-o', 'name']);
    expect(left.split('\n')).to.have.members([
      ...['trawl', 'trawl-redis', 'trawl-s3', 'trawl-first'].map((name) => `secret/${name}`),
      'persistentvolumeclaim/trawl-backups',
    ]);
  });

  it('takes the lines of docs/operate.md that prepare procedures in a cluster, word for word', async () => {
    const own = join(folder, 'operator');
    mkdirSync(own);
    cpSync(cluster.kubeconfig, join(own, 'kubeconfig'));
    const [redisUrl, mailUrl] = ['redis://other.example:6379', 'smtps://second:word@mail.example'];
    const names = {
      ...{ HOME: own, HELM_CACHE_HOME: own, HELM_CONFIG_HOME: own, HELM_DATA_HOME: own, KUBECACHEDIR: '/dev/null' },
      PATH: `${['helm', 'kubectl'].map((name) => dirname(tool(name))).join(':')}:${process.env.PATH}`,
      ...{ KUBECONFIG: join(own, 'kubeconfig'), CHART: chart, NEW_REDIS_URL: redisUrl, TRAWL_SMTP_URL: mailUrl },
    };
    const script = [
      'helm install trawl "$CHART" --values "$CHART/ci/least-values.yaml" -n trawl --create-namespace --no-hooks --set workers.namespace=drill-workers',
      'kubectl create secret generic trawl-billing --from-literal=stripe-key=sk_test_first -n trawl',
      // No pod runs here, so nothing is waited for.
      `kubectl() { case "$1 $2" in 'wait pod' | 'rollout status') ;; *) command kubectl "$@" ;; esac; }`,
      readPreparation('In a cluster'),
      readPreparation('Secrets', 'change_secret'),
      'eval "$USE_TRAWL_SMTP_URL"',
      'eval "$STOP_TRAWL"',
      readPreparation('Procedure: move to another Redis'),
      'eval "$START_TRAWL"',
      'command kubectl get pods,deployments,secrets --output json > "$HOME/found"',
      'helm uninstall trawl --no-hooks && command kubectl delete pod trawl-operator --force',
    ];
    const { code, out, err } = await runInBash(script.join('\n'), names);
    expect(code, `${out}${err}`).to.equal(0);
    const { items } = JSON.parse(readFileSync(join(own, 'found'), 'utf8'));
    const find = (kind: string, name: string): Json =>
      items.find(({ kind: of, metadata }: Json) => of === kind && metadata.name === name);
    const secretOf = (name: string, key: string) => Buffer.from(find('Secret', name).data[key], 'base64').toString();
    expect(secretOf('trawl-billing', 'smtp-url')).to.equal(mailUrl);
    expect(secretOf('trawl-billing', 'stripe-key')).to.equal('sk_test_first');
    expect(secretOf('trawl-redis', 'url')).to.equal(redisUrl);
    for (const name of ['trawl-api', 'trawl-controller']) {
      const { spec } = find('Deployment', name);
      expect(spec.replicas, name).to.equal(2);
      expect(spec.template.metadata.annotations, name).to.have.property('kubectl.kubernetes.io/restartedAt');
    }
    const { spec } = find('Pod', 'trawl-operator');
    const [container] = find('Deployment', 'trawl-controller').spec.template.spec.containers;
    expect(spec.containers[0]).to.include({ image: container.image }).and.not.to.have.any.keys('args', 'livenessProbe');
    expect(spec.containers[0].env).to.deep.equal(container.env);
    expect(spec.readinessGates, 'nothing makes it ready for calls of workers').to.have.length(1);
    expect(spec.volumes).to.deep.include({ name: 'backups', persistentVolumeClaim: { claimName: 'trawl-backups' } });
  });

  it('changes nothing when it is applied again, as GitOps does, which finds no default of the server in kinds of others', async () => {
    const own = { 'workers.namespace': 'again-workers', 'workers.createNamespace': true };
    const rendering = { scenario: 'ci/everything-values.yaml', namespace: 'again', values: own } as const;
    const items = render({ ...rendering, more: ['--no-hooks', '--skip-tests'] });
    await makeNamespace(cluster, 'again');
    const list = { apiVersion: 'v1', kind: 'List', items };
    const apply = async () => {
      await kubectl(cluster, ['apply', '--server-side', '-f', '-'], list);
      return JSON.parse(await kubectl(cluster, ['get', '-f', '-', '-o', 'json'], list)).items as Json[];
    };
    const ages = (made: Json[]) => made.map(({ kind, metadata }) => `${kind} ${metadata.name} ${metadata.generation}`);
    const first = await apply();
    expect(ages(await apply())).to.deep.equal(ages(first));
    const ofOthers = (made: Json[]) => made.filter(({ kind }) => foreign.includes(kind)).map(({ spec }) => spec);
    expect(ofOthers(first)).to.deep.equal(ofOthers(items));
  });

  it('is not removed while a job is open, and leaves no worker behind then', async () => {
    const { shape } = await closeNamespace(cluster, { values: { 'workers.namespace': 'films' } });
    const redis = await startTestServer();
    try {
      const store = storeOf(redis.connection);
      const attempt = { name: attemptName, jobId: attemptName.slice(0, -2), attempt: 1, endpoint: 'video' } as const;
      const job = makeJob({ ...attempt, maxMs: 60_000 }, shape);
      const jobs = '/apis/batch/v1/namespaces/films/jobs';
      await cluster.admin.ask('POST', jobs, job);
      const kubeconfig = cluster.kubeconfigOf({ name: administrator, group: 'system:serviceaccounts' });
      const env = { KUBECONFIG: kubeconfig, TRAWL_REDIS_URL: redis.url, TRAWL_KUBE_NAMESPACE: 'films' };
      const caller = await anAccount(store, { credits: 1 });
      await admitted(store, caller);
      const refused = await trawl(['uninstall'], { ...env, TRAWL_DURABILITY: 'relaxed' });
      expect(refused.code).to.equal(1);
      expect(refused.err).to.match(/^1 job is open\. Repeat helm uninstall when all have ended/);
      expect(await refusal(cluster.admin.ask('GET', `${jobs}/${attemptName}`))).to.equal(letIn);
      const controller = { holder: 'controller', term: '', isOff: false };
      const term = (await takeLead(store, controller))!;
      const uninstalled = trawl(['uninstall', '--force'], { ...env, TRAWL_DURABILITY: 'relaxed' });
      const first = () => refusal(cluster.admin.ask('GET', `${jobs}/${attemptName}`));
      await until(async () => (await first()) !== letIn, 20, 'the Job is removed');
      // A controller had begun this attempt before it lost the lead.
      await cluster.admin.ask('POST', jobs, job);
      const { code, out, err } = await uninstalled;
      expect({ code, err }).to.deep.equal({ code: 0, err: '' });
      expect(out).to.match(/^[2-9] Jobs and pods of workers were deleted, 1 jobs are open\.\n$/);
      expect(await takeLead(store, { ...controller, term }), 'the lead of the controller').to.equal(null);
      expect(await redis.connection.send(['PTTL', keys.lead])).to.be.within(1, 30_000);
      // The next installation on this Redis soon admits.
      expect(await redis.connection.send(['PTTL', keys.drain])).to.be.within(1, 120_000);
      const left = async () => {
        const [ofJobs, ofPods] = await Promise.all([
          cluster.admin.ask('GET', jobs),
          cluster.admin.ask('GET', '/api/v1/namespaces/films/pods'),
        ]);
        return ofJobs.items.length + ofPods.items.length;
      };
      await until(async () => (await left()) === 0, 20, 'nothing of the worker is left');
      await cluster.admin.ask('POST', jobs, job);
      let looks = 0;
      // A worker is found in the first round and none in the second, which has two looks more.
      const makeLate = async () => {
        looks += 1;
        if (looks === 7) await cluster.admin.ask('POST', jobs, job);
      };
      expect(await releaseWorkers(env, 'films', makeLate), 'two Jobs, one of them late').to.be.at.least(2);
      expect(looks).to.be.at.least(7);
      await until(async () => (await left()) === 0, 20, 'nothing of the late worker is left');
    } finally {
      await redis.stop();
    }
  });
});
