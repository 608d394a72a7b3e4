import { expect } from 'chai';
import { refuseRecord } from '../../src/model/record-layout.ts';
import { layouts } from '../../src/store/schema.ts';
import { chart } from '../support/chart.ts';
import { makeBackupVolume } from '../support/cluster/backup-volume.ts';
import { type ChartGround, namespace, startChartGround } from '../support/cluster/chart-ground.ts';
import { kubectl } from '../support/cluster/kubectl.ts';
import { makeNextImages, type NextImages } from '../support/cluster/next-images.ts';
import { openRelaxedRedis } from '../support/cluster/reachable-redis.ts';
import type { Json } from '../support/json.ts';
import { next } from '../support/next-release.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { expectEachChargedOnce, listFailed } from './jobs-in-flight.ts';
import { claim, type OperatorShell, openOperatorShell } from './operator-shell.ts';

type Part = 'api' | 'controller';
type Release = 'this' | 'next';

const versions = { this: layouts.release, next: next.release } as const;
/** Each change of the release, with the part that is held back: the other one changes before it, so every order comes. */
const walk: readonly (readonly [to: Release, heldBack: Part])[] = [
  ['next', 'controller'],
  ['this', 'api'],
  ['next', 'api'],
  ['this', 'controller'],
];
const other = { api: 'controller', controller: 'api' } as const;
const credits = 100;

/** Only in the long form: the cluster runs both releases for minutes. */
if (process.env.ROUNDS !== undefined) describe('an upgrade of the chart to another layout, and back', testUpgrade);

function testUpgrade(this: Mocha.Suite): void {
  this.timeout(900_000);
  const { folder, remove } = aFolder();
  const ids: string[] = [];
  let ground: ChartGround;
  let built: NextImages;
  let shell: OperatorShell;
  let key: string;

  before(async () => {
    built = makeNextImages(folder);
    ground = await startChartGround(openRelaxedRedis, { archives: built.archives });
    await makeBackupVolume(ground, claim);
  });
  after(async () => {
    await ground?.close();
    remove();
  });

  /** A release lets in the workers of both, so that no job waits for a controller. */
  const both = Object.values(versions).map((version) => `trawl-worker:${version}`);
  const images = `workers.extraImages=${JSON.stringify(both)}`;
  const more = ['--set', 'redis.durability=relaxed', '--set-json', images];
  /** Runs the procedure of an upgrade; Helm does not wait for a part that is held back. */
  const upgrade = () => {
    const words = ['helm', 'upgrade', 'trawl', built.chart, ...ground.values, ...more, '--wait=hookOnly'];
    return shell.run('upgrade', { UPGRADE_TRAWL: words.map((word) => `'${word}'`).join(' ') });
  };
  const rollBack = () => shell.run('roll back', { ROLL_BACK_TRAWL: 'helm rollback trawl' });
  const inNamespace = (...words: string[]) => kubectl(ground.cluster, [...words, '-n', namespace]);
  const settle = async (part: Part, release: Release) => {
    await inNamespace('rollout', 'status', `deployment/trawl-${part}`, '--timeout=240s');
    const pod = await ground.podOf(part);
    expect(pod.spec.containers[0].image).to.equal(`trawl-server:${versions[release]}`);
  };
  /** Has one more job in flight during a change; it ends afterwards. */
  const withJob = async <T>(change: () => Promise<T>): Promise<T> => {
    const letGo = ground.source.hold();
    const path = `/drip/${ids.length}/clip.mp4`;
    ids.push(await ground.submit(key, path));
    await until(() => ground.source.asked.includes(path), 120, 'a worker downloads');
    const changed = await change();
    letGo();
    return changed;
  };
  const expectChargedOnce = () => expectEachChargedOnce(ground, 'trawl', { key, credits, ids });

  it('begins with this release, whose account has a key', async () => {
    await ground.succeed('install', 'trawl', chart, ...ground.values, ...more);
    key = await ground.openAccount('trawl', 'films', credits);
    shell = await openOperatorShell(ground, folder);
  });

  for (const [to, heldBack] of walk) {
    const first = other[heldBack];
    const title = `${to === 'next' ? 'is upgraded' : 'is rolled back'}, the ${first} first and then the ${heldBack}, and loses no job in flight`;
    it(`${title} while processes of it are killed`, async () => {
      const from = to === 'next' ? 'this' : 'next';
      await withJob(async () => {
        await inNamespace('rollout', 'pause', `deployment/trawl-${heldBack}`);
        expect(await (to === 'next' ? upgrade() : rollBack())).to.match(/^The record has layout \d+\./m);
        const isBack = await killProcess(ground, heldBack);
        await settle(first, to);
        await isBack();
        expect((await ground.podOf(heldBack)).spec.containers[0].image).to.equal(`trawl-server:${versions[from]}`);
      });
      await withJob(async () => {
        await inNamespace('rollout', 'resume', `deployment/trawl-${heldBack}`);
        await settle(heldBack, to);
      });
      await expectChargedOnce();
    });
  }

  it('is upgraded, and its record is sealed when no process of the older release runs any more', async () => {
    await withJob(async () => {
      await upgrade();
      for (const part of ['api', 'controller'] as const) await settle(part, 'next');
    });
    await shell.makePod();
    const refusal = await shell.tryRun('seal the record');
    // The last process of the older release ended less than a minute ago, unless this machine is slow.
    if (refusal.code !== 0)
      expect(refusal.out + refusal.err).to.include('An older release runs or ran within the last');
    const sealed = async () => {
      const { code, out } = await shell.tryRun('seal the record');
      return code === 0 && out;
    };
    const said = await until(sealed, 120, 'the record is sealed');
    expect(said).to.include(`The record has layout ${next.layout}. No release before ${next.release} reads it.`);
  });

  it('refuses the older release in its pods then, while the newer one goes on', async () => {
    const record = { layout: next.layout, leastRelease: next.release };
    const sentence = refuseRecord(record, layouts) ?? '';
    expect(sentence).to.include('start the newer release again');
    await ground.succeed('rollback', 'trawl');
    for (const part of ['api', 'controller'] as const) await seeRefusal(ground, part, sentence);
    ids.push(await ground.submit(key, '/films/clip.mp4'));
    expect(await listFailed(ground, key, ids)).to.deep.equal([]);
    await withJob(() => ground.succeed('rollback', 'trawl', '--wait', '--timeout', '240s'));
    await expectChargedOnce();
    console.log(`        ${ids.length} jobs, each charged once`);
  });
}

/** Kills the newest process of a part on the node; returns what waits until its pod runs again. */
async function killProcess(ground: ChartGround, part: Part): Promise<() => Promise<unknown>> {
  const container = async () => (await ground.podOf(part)).status.containerStatuses[0];
  const { restartCount } = await container();
  const lines = ground.node.run('ps', '--sort=-start_time', '-eo', 'pid,args').split('\n');
  // Pods that end have older ones.
  const newest = lines.find((line) => line.includes(`src/main.ts ${part}`));
  if (newest === undefined) throw new Error(`There is no process of the ${part}`);
  ground.node.run('kill', '-KILL', String(Number.parseInt(newest, 10)));
  const isBack = async () => {
    const now = await container().catch(() => undefined);
    return now?.restartCount > restartCount && now.ready;
  };
  return () => until(isBack, 60, `the ${part} runs again`);
}

/** Waits until a pod of this release has said why it does not start. */
async function seeRefusal({ cluster }: ChartGround, part: Part, sentence: string): Promise<void> {
  const says = async () => {
    const words = ['get', 'pods', '-n', namespace, '-l', `app.kubernetes.io/component=${part}`, '-o', 'json'];
    const pods: Json[] = JSON.parse(await kubectl(cluster, words)).items;
    const older = pods.find(({ spec }) => spec.containers[0].image === `trawl-server:${layouts.release}`);
    if (older === undefined) return false;
    const logs = ['logs', older.metadata.name, '-n', namespace];
    return (await kubectl(cluster, logs).catch(() => '')).includes(sentence);
  };
  // Kubernetes starts it again ever later where Redis did not answer in time.
  await until(says, 120, `a pod of the older ${part} says: ${sentence}`);
}
