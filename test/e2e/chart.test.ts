import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { openBackup } from '../../src/backup/backup-manifest.ts';
import { makeAccountId, makeKey } from '../../src/model/api-key.ts';
import { trialJobId } from '../../src/runners/kubernetes/labels.ts';
import { chart } from '../support/chart.ts';
import { makeBackupVolume } from '../support/cluster/backup-volume.ts';
import {
  type ChartGround,
  controllerOf,
  namespace,
  startChartGround,
  workersNamespace,
} from '../support/cluster/chart-ground.ts';
import { apply, kubectl } from '../support/cluster/kubectl.ts';
import { type PolicyAgent, startPolicyAgent } from '../support/cluster/policy-agent.ts';
import { openReachableRedis } from '../support/cluster/reachable-redis.ts';
import { until } from '../support/until.ts';
import { expectEachChargedOnce, expectSameWorkers, maxInFlight, submitInFlight } from './jobs-in-flight.ts';
import { followNotes } from './notes.ts';
import { allowedWays, findWays, listTargets } from './pod-ways.ts';
import { signInFirst, startByPage } from './sign-in.ts';

/** Twenty workers that start at once keep the processors of this machine busy for a minute. */
const inFlight = process.env.ROUNDS === undefined ? 1 : maxInFlight;
const backupPods = 'app.kubernetes.io/component=backup';

describe('the chart on a real node', function () {
  this.timeout(900_000);
  let ground: ChartGround;
  let agent: PolicyAgent | undefined;
  let notes = '';
  let backups: string;
  let succeed: ChartGround['succeed'];
  const firstKey = makeKey(makeAccountId(randomBytes(16)), randomBytes(32));

  before(async () => {
    ground = await startChartGround(openReachableRedis);
    succeed = ground.succeed;
    const first = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'first', namespace },
      stringData: { key: firstKey },
    };
    await apply(ground.cluster, first);
    backups = await makeBackupVolume(ground, 'backups');
  });
  after(async () => {
    await agent?.close();
    await ground?.close();
  });

  /** A removal waits for open jobs. */
  const more = [
    ...['--set', 'uninstall.waitSeconds=1,bootstrap.existingSecret=first,backup.existingClaim=backups'],
    ...['--set', 'workers.priorityClass=media-workers,workers.createPriorityClass=true'],
    ...['--set', 'dashboard.apart=true'],
    // Never: its backup is taken by hand.
    ...['--set', 'backup.schedule=0 0 31 2 *'],
  ];
  const listTrials = () => {
    const words = ['get', 'jobs', '-n', workersNamespace, '-l', `trawl/job=${trialJobId}`, '-o', 'name'];
    return kubectl(ground.cluster, words);
  };
  const testOf = (name: string) => ['test', 'trawl', '--logs', '--filter', `name=${name}`, '--timeout', '240s'];

  it('is installed with one command, and every pod is ready', async () => {
    notes = await succeed('install', 'trawl', chart, ...ground.values, ...more);
    const running = ['get', 'pods', '-n', namespace, '--field-selector=status.phase=Running', '-o', 'json'];
    const { items } = JSON.parse(await kubectl(ground.cluster, running));
    expect(items).to.have.length(5);
  });

  it('has an account with the key of a Secret', async () => {
    expect(await ground.ask(firstKey, '/v1/usage')).to.include({ remaining: 100 });
  });

  it('prints three commands that lead to the first file', async () => {
    const job = JSON.parse((await followNotes(ground, notes)).trim().split('\n').at(-1) ?? '');
    expect(job).to.include({ success: true });
    expect(job.result.response).to.match(/^http:\/\/trawl\.test\//);
  });

  it('signs the first person in at pods of the dashboard alone, whose page starts a download', async () => {
    const key = await ground.openAccount('trawl', 'people', 1);
    const browser = await signInFirst(ground, 'people');
    await ground.completes(key, await startByPage(browser, `${ground.source.url}/films/clip.mp4`));
    expect(await ground.ask(key, '/v1/usage')).to.include({ remaining: 0, held: 0 });
    const api = await ground.podOf('api');
    const refused = await fetch(`http://${api.status.podIP}:8081/`).catch(({ cause }) => cause.code);
    expect(refused).to.equal('ECONNREFUSED');
  });

  it('has a doctor that finds nothing wrong as a Job beside the release', async () => {
    const only = ['--set', 'doctor.enabled=true', '--show-only', 'templates/doctor.yaml'];
    const objects = await succeed('template', 'trawl', chart, ...ground.values, ...more, ...only);
    await kubectl(ground.cluster, ['apply', '-f', '-'], objects);
    const words = ['get', 'job', 'trawl-doctor', '-n', namespace, '-o', 'json'];
    const status = async () => JSON.parse(await kubectl(ground.cluster, words)).status;
    const done = await until(
      async () => {
        const { succeeded = 0, failed = 0 } = await status();
        return succeeded + failed > 0 && { succeeded };
      },
      60,
      'the doctor has answered',
    );
    const selected = ['-l', 'app.kubernetes.io/component=doctor', '--tail=-1'];
    const said = await kubectl(ground.cluster, ['logs', '-n', namespace, ...selected]);
    expect(done, said).to.deep.equal({ succeeded: 1 });
    expect(said)
      .to.match(/This pod is on the node node-1/)
      .and.match(/workers lets in workers/);
    expect(said).not.to.match(/problem|warning/);
    await kubectl(ground.cluster, ['delete', '-f', '-', '--ignore-not-found'], objects);
  });

  it('passes its own test with TLS between the pods: a job from the account to its file, charged once', async () => {
    const said = await succeed(...testOf('trawl-test'));
    expect(said).to.include('A worker downloaded the film').and.include('The job was charged once');
  });

  it('says that this cluster does not enforce network policies', async () => {
    const { code, said } = await ground.helm(...testOf('trawl-policies'));
    expect(code).to.equal(1);
    expect(said).to.match(
      /The cluster does not enforce network policies: a worker pod reaches trawl-inspector\S+:8083 and 10\.96\.0\.1:443/,
    );
    expect(await listTrials()).to.equal('');
  });

  it('lets each pod reach what it needs and nothing else, once an agent enforces the policies', async () => {
    const key = await ground.openAccount('trawl', 'ways', 1);
    const {
      ids: [jobId = ''],
      letGo,
    } = await submitInFlight(ground, key, 1);
    const targets = listTargets(ground);
    // Without an agent each way that is forbidden below is open.
    const all = async () => Object.values(await findWays(ground, targets)).map((ways) => ways.length);
    await until(async () => (await all()).join() === '9,9,9,9,9,10', 20, 'every way is open without an agent');
    agent = await startPolicyAgent(ground.cluster, ground.network, 1);
    const found = await until(
      async () => {
        const ways = await findWays(ground, targets);
        return JSON.stringify(ways) === JSON.stringify(allowedWays) && ways;
      },
      30,
      'the policies are enforced',
    ).catch(() => findWays(ground, targets));
    expect(found).to.deep.equal(allowedWays);
    letGo();
    await ground.completes(key, jobId);
    expect(await succeed(...testOf('trawl-test'))).to.include('The job was charged once');
    expect(await succeed(...testOf('trawl-policies'))).to.include(
      'The cluster enforces network policies: a worker pod',
    );
    const doctor = ['node', '/opt/trawl/src/main.ts', 'doctor', '--policies', '--json'];
    const told = await kubectl(ground.cluster, ['exec', '-n', namespace, controllerOf('trawl'), '--', ...doctor]);
    expect(JSON.parse(told)).to.include({ ok: true });
    expect(await listTrials()).to.equal('');
  });

  it('backs the record up by its CronJob, and tells the age of the backup', async () => {
    const { cluster } = ground;
    const age = async () => {
      const script = "fetch('http://127.0.0.1:9090/metrics').then((answer) => answer.text()).then(console.log)";
      const words = ['exec', '-n', namespace, controllerOf('trawl'), '--', 'node', '-e', script];
      return Number(/^trawl_backup_age_seconds (.*)$/m.exec(await kubectl(cluster, words))?.[1]);
    };
    // The chart says that backups are scheduled: until the first one the age counts from the first reading.
    await age();
    expect(await age()).to.be.greaterThan(0);
    await kubectl(cluster, ['create', 'job', 'backup-by-hand', '--from=cronjob/trawl-backup', '-n', namespace]);
    const status = ['get', 'job', 'backup-by-hand', '-n', namespace, '-o', 'jsonpath={.status.succeeded}'];
    await until(async () => (await kubectl(cluster, status)) === '1', 120, 'the backup is taken').catch(
      async (error) => {
        throw new Error(await kubectl(cluster, ['logs', '-n', namespace, '-l', backupPods]), { cause: error });
      },
    );
    const { manifest } = await openBackup(backups);
    expect(manifest.keys).to.be.greaterThan(10);
    const takenAt = Date.parse(manifest.taken_at);
    await until(async () => (await age()) <= (Date.now() - takenAt) / 1000, 60, 'the age is that of the backup');
    expect(await kubectl(cluster, ['get', 'cronjob,job', '-n', namespace, '-l', backupPods, '-o', 'name'])).to.equal(
      'cronjob.batch/trawl-backup\njob.batch/backup-by-hand',
    );
    await kubectl(cluster, ['delete', 'job', 'backup-by-hand', '-n', namespace]);
  });

  it('is upgraded and rolled back with jobs in flight, and refuses to be removed meanwhile', async () => {
    const key = await ground.openAccount('trawl', 'films', 30);
    const { ids, pods, letGo } = await submitInFlight(ground, key, inFlight);
    expect(pods).to.have.length(inFlight);
    const { code, said } = await ground.helm('uninstall', 'trawl', '--timeout', '120s');
    expect(code).to.equal(1);
    expect(said).to.include(inFlight === 1 ? '1 job is open' : `${inFlight} jobs are open`);
    // Helm upgrades no release that it has begun to uninstall.
    const [{ revision }] = JSON.parse(await succeed('history', 'trawl', '--max', '1', '--output', 'json'));
    await succeed('rollback', 'trawl', String(revision), '--wait', '--timeout', '240s');
    await succeed('upgrade', 'trawl', chart, ...ground.values, ...more, '--set', 'settings.TRAWL_LOG_LEVEL=debug');
    await succeed('rollback', 'trawl', '1', '--wait', '--timeout', '240s');
    // Egress was replaced twice: the pods that ended still carry the downloads.
    await expectSameWorkers(ground, pods);
    letGo();
    const last = await ground.submit(key, '/films/clip.mp4');
    await expectEachChargedOnce(ground, 'trawl', { key, credits: 30, ids: [...ids, last] });
    expect(await ground.ask(firstKey, '/v1/usage')).to.include({ remaining: 100 });
  });

  it('is removed with one command, and leaves only Secrets and the volume claim of the operator', async () => {
    await removeRelease('trawl');
  });

  const removeRelease = async (release: string) => {
    const { cluster } = ground;
    await succeed('uninstall', release, '--wait', '--timeout', '240s');
    const gone = async () => !(await kubectl(cluster, ['get', 'namespaces', '-o', 'name'])).includes(workersNamespace);
    await until(gone, 60, 'the namespace of the workers is gone');
    const kinds = 'all,networkpolicies,serviceaccounts,pvc,configmaps,roles,secrets,validatingadmissionpolicies';
    const left = async () =>
      (await kubectl(cluster, ['get', kinds, '-n', namespace, '-o', 'name'])).trim().split('\n').sort();
    const own = [
      'configmap/kube-root-ca.crt',
      'persistentvolumeclaim/backups',
      ...['egress-tls', 'first', 'gateway-tls', 'inspector-tls', 'redis', 'store', 'trawl'].map(
        (name) => `secret/${name}`,
      ),
      'serviceaccount/default',
    ];
    const others = async () =>
      (await left()).filter((name) => !/^pod\/.*-(test|policies)$|configmap\/.*-test/.test(name));
    await until(async () => (await others()).length === own.length, 60, 'the pods are gone');
    expect(await others()).to.deep.equal(own);
  };
});
