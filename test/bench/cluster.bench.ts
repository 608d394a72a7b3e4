import { loadavg } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { attemptNameOf } from '../../src/runners/runner.ts';
import { readAttempts } from '../../src/store/jobs/read-job.ts';
import { makeNamespace, quickLoss, raisedLimits } from '../support/cluster/cluster.ts';
import { makeWorkersNamespace } from '../support/cluster/runner.ts';
import { namespace, type Scene, setScene } from '../support/cluster/scene.ts';
import { countOurs } from '../support/cluster/served.ts';
import { until } from '../support/until.ts';
import { runBare } from './bare.ts';
import type { Measured } from './measured.ts';
import { costOf } from './plane.ts';
import { type QuietJob, runQuietly } from './quiet.ts';
import { countEnded, runMilliseconds, settleMany, shareMegabytes, submitMany, whileLed } from './settled.ts';

const many = 1_000;
const usualMany = 240;
const waiting = 10_000;
const quietJobs = 25;
/** As many as there are: nothing waits but for the cluster. */
const slots = { TRAWL_WORKERS: String(many) };
const fast = { ...slots, TRAWL_KUBE_RATE: '500' };
const slowRate = 40;
const windowSeconds = 20;
const bareNamespace = 'bare';
/** Nothing in it is refused or counted. */
const openNamespace = 'open';
const bar = {
  rate: 30,
  usualRate: 8,
  ownMilliseconds: 5,
  made: 100,
  running: 60,
  settled: 50,
  megabytes: 250,
  lost: 5,
};

/** What jobs cost in a cluster, beside a client that does no more than it must; a fake kubelet runs their pods. */
export async function* measure(): AsyncGenerator<Measured> {
  yield* within({ nodes: 5, flags: quickLoss }, async function* (scene) {
    yield* await settleWithUsualLimits(scene);
    yield await loseNode(scene);
  });
  yield* within({ nodes: 5, flags: raisedLimits, planOf: planOfBare }, async function* (scene) {
    await makeWorkersNamespace(scene.cluster, bareNamespace);
    await makeNamespace(scene.cluster, openNamespace);
    yield* await runManyJobs(scene);
    yield* await runFewJobs(scene);
    yield* await letManyWait(scene);
  });
}

async function* within(
  options: Parameters<typeof setScene>[0],
  use: (scene: Scene) => AsyncGenerator<Measured>,
): AsyncGenerator<Measured> {
  const scene = await setScene(options);
  try {
    yield* use(scene);
  } finally {
    await scene.stop();
  }
}

function planOfBare(attempt: string) {
  return attempt.startsWith('bare-') ? { runMs: runMilliseconds } : undefined;
}

/** The limits that the cluster's controllers set themselves hold. */
async function settleWithUsualLimits(scene: Scene): Promise<Measured[]> {
  const deferred = await settleMany(scene, slots, usualMany);
  const atOnce = await settleMany(scene, slots, usualMany, false);
  return [
    {
      what: `settled a second, limits of the cluster as they come / ${bar.usualRate}`,
      ratio: usualMany / deferred.seconds / bar.usualRate,
      bound: { least: 1 },
      because: `${usualMany} jobs, ${perSecond(usualMany, deferred.seconds)}${load()}`,
    },
    {
      what: 'settled a second, same limits: deferred cleanup / cleanup at once',
      ratio: atOnce.seconds / deferred.seconds,
      bound: { least: 1.1 },
      because: `${perSecond(usualMany, deferred.seconds)} : ${perSecond(usualMany, atOnce.seconds)}`,
    },
  ];
}

async function loseNode(scene: Scene): Promise<Measured> {
  const { admin } = scene.cluster;
  return whileLed(scene, slots, async () => {
    const id = await scene.submit((attempt) => (attempt === 1 ? {} : undefined));
    const { metadata, spec } = await scene.runningPod(id);
    scene.kubelet.cutOff(spec.nodeName ?? '');
    const path = `/api/v1/namespaces/${namespace}/pods/${metadata.name}`;
    await until(async () => (await admin.ask('GET', path)).metadata.deletionTimestamp, 60, 'the pod is to be deleted');
    const marked = Date.now();
    const endOf = async () => (await readAttempts(scene.store, id)).find(({ ended_at }) => ended_at !== undefined);
    const over = await until(endOf, 60, `${attemptNameOf(id, 1)} is over`);
    await scene.ended(id, 30);
    const seconds = ((over?.ended_at ?? Number.NaN) - marked) / 1000;
    return {
      what: `dead node, its pod marked to its attempt over / ${bar.lost} s`,
      ratio: seconds / bar.lost,
      bound: { most: 1 },
      because: `${seconds.toFixed(1)} s`,
    };
  });
}

/** Ours between two halves of the bare client's, so that whatever else the machine does falls on both. */
async function runManyJobs(scene: Scene): Promise<Measured[]> {
  const half = () => costOf(scene.cluster, () => runBare(scene.cluster, bareNamespace, many / 2));
  const before = await half();
  const ours = await settleMany(scene, fast, many);
  const after = await half();
  const bareSeconds = before.value.seconds + after.value.seconds;
  const barePlane = before.milliseconds + after.milliseconds;
  const bareOwn = before.value.cpuMilliseconds + after.value.cpuMilliseconds;
  const each = (milliseconds: number) => `${(milliseconds / many).toFixed(1)} ms`;
  return [
    {
      what: `settled a second / ${bar.rate} (the bar of a quiet machine)`,
      ratio: many / ours.seconds / bar.rate,
      because: `${many} jobs, ${perSecond(many, ours.seconds)}${load()}`,
    },
    {
      what: 'settled a second / completed a second by a bare client',
      ratio: bareSeconds / ours.seconds,
      bound: { least: 0.8 },
      because: `${perSecond(many, ours.seconds)} : ${perSecond(many, bareSeconds)}`,
    },
    {
      what: "control plane for a job / for one of the bare client's",
      ratio: ours.milliseconds / barePlane,
      bound: { most: 1.1 },
      because: `${each(ours.milliseconds)} : ${each(barePlane)} of CPU, ${(ours.requests / many).toFixed(1)} : ${((before.requests + after.requests) / many).toFixed(1)} requests`,
    },
    {
      what: `our controller for a job / ${bar.ownMilliseconds} ms`,
      ratio: ours.cpuMilliseconds / many / bar.ownMilliseconds,
      bound: { most: 1 },
      because: `${each(ours.cpuMilliseconds)} of CPU without Redis; the bare client ${each(bareOwn)}`,
    },
  ];
}

/** One job at a time. */
async function runFewJobs(scene: Scene): Promise<Measured[]> {
  const { ours, bare } = await whileLed(scene, slots, () => runQuietly(scene, openNamespace, quietJobs));
  const row = (what: string, most: number, of: (job: QuietJob) => number, beside: string): Measured => ({
    what: `one job: ${what} / ${most} ms`,
    ratio: quantile(ours.map(of), 0.5) / most,
    bound: { most: 1 },
    because: `${spread(ours.map(of))}${beside}`,
  });
  const bareRuns = `; a bare Job ${spread(bare.map(({ running }) => running))}`;
  return [
    row('submitted to its Job there', bar.made, ({ made }) => made, ''),
    row('submitted to its pod running', bar.running, ({ running }) => running, bareRuns),
    row('its pod ended to settled', bar.settled, ({ settled = Number.NaN, ended }) => settled - ended, load()),
  ];
}

/** The requests that a controller may make are its limit. */
async function letManyWait(scene: Scene): Promise<Measured[]> {
  const settings = { ...slots, TRAWL_KUBE_RATE: String(slowRate) };
  return whileLed(scene, settings, async ({ process }) => {
    await submitMany(scene, waiting);
    // What it may do at once, it does first.
    const burst = Date.now();
    await until(async () => (await countEnded(scene, burst)) >= slowRate, 60, 'the first jobs are settled');
    const [began, before] = [performance.now(), await countOurs(scene.cluster)];
    await pause(windowSeconds * 1000);
    const made = (await countOurs(scene.cluster)) - before;
    const seconds = (performance.now() - began) / 1000;
    const megabytes = shareMegabytes(process.pid ?? 0);
    return [
      {
        what: `${waiting} jobs wait: requests made / those that TRAWL_KUBE_RATE allows`,
        ratio: made / (slowRate * seconds),
        bound: { least: 0.9 },
        because: `${made} requests in ${seconds.toFixed(1)} s at ${slowRate} a second${load()}`,
      },
      {
        what: `${waiting} jobs wait: memory of the controller / ${bar.megabytes} MB`,
        ratio: megabytes / bar.megabytes,
        bound: { most: 1 },
        because: `${megabytes.toFixed(0)} MB; the way in by a kubeconfig takes some 60 MB of it`,
      },
    ];
  });
}

function perSecond(count: number, seconds: number): string {
  return `${(count / seconds).toFixed(1)}/s`;
}

function load(): string {
  return `; load ${(loadavg()[0] ?? 0).toFixed(1)}`;
}

function spread(values: readonly number[]): string {
  return `median ${quantile(values, 0.5).toFixed(0)} ms, p95 ${quantile(values, 0.95).toFixed(0)}`;
}

function quantile(values: readonly number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(part * (values.length - 1))] ?? Number.NaN;
}
