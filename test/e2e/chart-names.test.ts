import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { chart } from '../support/chart.ts';
import { startAdmissionWebhook } from '../support/cluster/admission-webhook.ts';
import {
  type ChartGround,
  controllerOf,
  namespace,
  startChartGround,
  workersNamespace,
} from '../support/cluster/chart-ground.ts';
import { kubectl } from '../support/cluster/kubectl.ts';
import { chosenUser, judgeAsOpenShift } from '../support/cluster/open-shift.ts';
import { buildPreviousRelease, type PreviousRelease } from '../support/cluster/previous-release.ts';
import { buildMilliseconds } from '../support/images.ts';
import type { Json } from '../support/json.ts';
import { aFolder } from '../support/redis.ts';
import { type Sentinels, startSentinels } from '../support/sentinel.ts';
import { until } from '../support/until.ts';
import { expectEachChargedOnce, listWorkers, maxInFlight, submitInFlight } from './jobs-in-flight.ts';

/** As many letters as Helm allows. */
const longest = 'r'.repeat(53);
const load = { calls: 16, everyMs: 300, breakAfter: 5, mostMs: 10_000 };
const downAfterMs = 2_000;

/** Only in the long form: images of another commit are built for it. */
if (process.env.ROUNDS !== undefined) describe('releases of other names, on a Redis behind Sentinels', testReleases);

function testReleases(this: Mocha.Suite): void {
  this.timeout(900_000);
  const { folder, remove } = aFolder();
  let older: PreviousRelease;
  let ground: ChartGround;
  let sentinels: Sentinels;
  let succeed: ChartGround['succeed'];

  before(async function () {
    this.timeout(2 * buildMilliseconds);
    older = buildPreviousRelease(folder);
    const openRedis = async (address: string) => {
      sentinels = await startSentinels(address, downAfterMs);
      const peers = sentinels.ports.map((port) => ({ cidr: `${address}/32`, port }));
      return { url: sentinels.url, peers, stop: sentinels.stop };
    };
    ground = await startChartGround(openRedis, { releases: [longest, 'x'], archives: older.archives });
    succeed = ground.succeed;
  });
  after(async () => {
    await ground?.close();
    remove();
  });

  const testOf = (name: string) => ['test', name, '--logs', '--filter', `name=${name}-test`, '--timeout', '240s'];

  it('installs the release of another commit under a name of 53 letters', async () => {
    await succeed('install', longest, older.chart, ...ground.values, '--set', `images.registry=${older.registry}`);
    const api = await ground.podOf('api');
    expect(api.spec.containers[0].image).to.match(new RegExp(`^${older.registry}/trawl-server:`));
  });

  it(`is upgraded to this release and rolled back with ${maxInFlight} jobs in flight, and charges each once`, async () => {
    const key = await ground.openAccount(longest, 'films', 100);
    const ids: string[] = [];
    const change = async (image: RegExp, words: readonly string[]) => {
      const flight = await submitInFlight(ground, key);
      ids.push(...flight.ids);
      expect(flight.pods).to.have.length(maxInFlight);
      const api = await ground.podOf('api');
      expect(api.spec.containers[0].image).to.match(image);
      let isOver = false;
      const changed = succeed(...words).finally(() => (isOver = true));
      // Jobs that are submitted meanwhile wait or start.
      while (!isOver) {
        ids.push(await ground.submit(key, '/films/clip.mp4'));
        await pause(5_000);
      }
      await changed;
      const pods = await listWorkers(ground);
      flight.letGo();
      await expectEachChargedOnce(ground, longest, { key, credits: 100, ids });
      return flight.pods.filter((pod) => !pods.includes(pod));
    };
    // Egress of the older release may end the downloads.
    await change(new RegExp(`^${older.registry}/`), ['upgrade', longest, chart, ...ground.values]);
    const ended = await change(/^trawl-server:/, ['rollback', longest, '1', '--wait', '--timeout', '240s']);
    expect(ended, 'workers that began again').to.deep.equal([]);
    await succeed('upgrade', longest, chart, ...ground.values);
  });

  it('loses nothing that was answered when the primary is killed under load, and answers again within 10 s', async () => {
    const key = await ground.openAccount(longest, 'load', 100);
    const { awayMs, ids } = await callWhile(ground, key, () => sentinels.killPrimary());
    console.log(`        away for ${(awayMs / 1000).toFixed(1)} s`);
    expect(awayMs).to.be.lessThan(load.mostMs);
    expect(ids.size).to.equal(load.calls);
    await expectEachChargedOnce(ground, longest, { key, credits: 100, ids: [...ids] });
  });

  it('is removed, and installed again as x, whose test passes', async () => {
    await succeed('uninstall', longest, '--wait', '--timeout', '240s');
    const gone = async () =>
      !(await kubectl(ground.cluster, ['get', 'namespaces', '-o', 'name'])).includes(workersNamespace);
    await until(gone, 60, 'the namespace of the workers is gone');
    await succeed('install', 'x', chart, ...ground.values);
    // The drain of the removal would end by itself two minutes after it.
    const drain = ['node', '/opt/trawl/src/main.ts', 'admin', 'drain', 'off'];
    await kubectl(ground.cluster, ['exec', '-n', namespace, controllerOf('x'), '--', ...drain]);
    expect(await succeed(...testOf('x'))).to.include('The job was charged once');
  });

  it('passes its test with a user that the cluster chooses for each pod, workers included', async () => {
    const rules = { namespace, others: [workersNamespace], resource: 'pods' } as const;
    const users = new Set<unknown>();
    const webhook = await startAdmissionWebhook(ground.cluster, rules, (pod) => {
      const answer = judgeAsOpenShift(pod);
      if ('yes' in answer) users.add(pod.metadata.labels?.['app.kubernetes.io/component']);
      return answer;
    });
    try {
      await succeed('upgrade', 'x', chart, ...ground.values, '--set', 'adaptSecurityContext=force');
      expect(await succeed(...testOf('x'))).to.include('The job was charged once');
      const id = ['exec', '-n', namespace, controllerOf('x'), '--', 'node', '-p', 'process.getuid()'];
      expect(await kubectl(ground.cluster, id)).to.equal(String(chosenUser));
      expect([...users].sort()).to.include.members(['api', 'controller', 'egress', 'inspector', 'test', 'worker']);
      await succeed('uninstall', 'x', '--wait', '--timeout', '240s');
    } finally {
      await webhook.remove();
    }
  });
}

/** Submits jobs at a steady rate while something is broken; returns them with the longest time without an answer from then on. */
async function callWhile(ground: ChartGround, key: string, breakIt: () => Promise<void>) {
  const pod = await ground.podOf('api');
  const query = encodeURIComponent(`${ground.source.url}/films/clip.mp4`);
  const url = `http://${pod.status.podIP}:8080/v1/video/download?query=${query}`;
  const answered: number[] = [];
  const ids = new Set<string>();
  const ask = async (n: number) => {
    const headers = { 'x-api-key': key, 'idempotency-key': `call-${n}` };
    const answer = await fetch(url, { headers, signal: AbortSignal.timeout(5_000) }).catch(() => null);
    if (answer?.status !== 202) return pause(100).then(() => false);
    answered.push(performance.now());
    return ids.add(((await answer.json()) as Json).job_id);
  };
  const calls: Promise<unknown>[] = [];
  let broken = 0;
  for (let n = 0; n < load.calls; n++) {
    // What was answered with 503, or not at all, is asked for again with the same key.
    calls.push(until(() => ask(n), 60, `call ${n} is answered`));
    if (n === load.breakAfter) {
      broken = performance.now();
      await breakIt();
    }
    await pause(load.everyMs);
  }
  await Promise.all(calls);
  const times = [broken, ...answered.filter((at) => at > broken).sort((one, other) => one - other)];
  return { awayMs: Math.max(...times.slice(1).map((at, n) => at - (times[n] ?? at))), ids };
}
