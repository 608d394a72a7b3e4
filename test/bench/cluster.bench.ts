import { loadavg } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { attemptNameOf } from '../../src/runners/runner.ts';
import { makeNamespace, quickLoss, raisedLimits } from '../support/cluster/cluster.ts';
import { countControllerRequests } from '../support/cluster/request-counts.ts';
import { makeWorkersNamespace } from '../support/cluster/runner.ts';
import { namespace, startTestbed, type Testbed } from '../support/cluster/testbed.ts';
import { readAttempts } from '../support/stored-job.ts';
import { until } from '../support/until.ts';
import { startBenchRedis } from './bench-redis.ts';
import {
  countEnded,
  runMilliseconds,
  settleMany,
  sharedSettings,
  shareMegabytes,
  submitMany,
  whileLed,
} from './cluster-settles.ts';
import { measureControlPlane } from './control-plane-cost.ts';
import type { Measurement } from './measurement.ts';
import { runMinimalClient } from './minimal-client.ts';
import { runSingleJobs, type SingleJob } from './single-jobs.ts';
import { compareEventParsing } from './watch-events.ts';

const many = 1_000;
const usualMany = 240;
const waiting = 10_000;
const fewWaiting = 500;
const singleJobs = 25;
/** As many as there are: nothing waits but for the cluster. */
const slots = { TRAWL_WORKERS: String(many) };
const fast = { ...slots, TRAWL_KUBE_RATE: '500' };
const slowRate = 40;
const windowSeconds = 20;
const minimalNamespace = 'minimal';
/** Nothing in it is refused or counted. */
const openNamespace = 'open';
const targets = {
  rate: 30,
  usualRate: 8,
  ownMilliseconds: 5,
  made: 100,
  running: 60,
  settled: 50,
  megabytes: 250,
  lost: 5,
};

/** The cost of jobs in a cluster beside a minimal client; a fake kubelet runs their pods. */
export async function* measure(): AsyncGenerator<Measurement> {
  yield* within({ nodes: 5, flags: quickLoss }, async function* (testbed) {
    yield* await settleWithUsualLimits(testbed);
    yield await loseNode(testbed);
  });
  yield* within({ nodes: 5, flags: raisedLimits, planOf: planOfMinimal }, async function* (testbed) {
    await makeWorkersNamespace(testbed.cluster, minimalNamespace);
    await makeNamespace(testbed.cluster, openNamespace);
    yield* await runManyJobs(testbed);
    yield* await runFewJobs(testbed);
    yield* await letManyWait(testbed);
  });
}

async function* within(
  options: Parameters<typeof startTestbed>[0],
  use: (testbed: Testbed) => AsyncGenerator<Measurement>,
): AsyncGenerator<Measurement> {
  const testbed = await startTestbed({ ...options, startRecord: startBenchRedis, workerEnv: sharedSettings });
  try {
    yield* use(testbed);
  } finally {
    await testbed.stop();
  }
}

function planOfMinimal(attempt: string) {
  return attempt.startsWith('minimal-') ? { runMs: runMilliseconds } : undefined;
}

/** The limits that the cluster's controllers set themselves hold. */
async function settleWithUsualLimits(testbed: Testbed): Promise<Measurement[]> {
  const deferred = await settleMany(testbed, slots, usualMany);
  const atOnce = await settleMany(testbed, slots, usualMany, false);
  return [
    {
      what: `settled a second, limits of the cluster as they come / ${targets.usualRate}`,
      ratio: usualMany / deferred.seconds / targets.usualRate,
      bound: { least: 1 },
      because: `${usualMany} jobs, ${perSecond(usualMany, deferred.seconds)}${load()}`,
    },
    {
      what: 'settled a second, same limits: deferred cleanup / cleanup at once',
      ratio: atOnce.seconds / deferred.seconds,
      bound: { least: 1.1 },
      optimisation: 'src/runners/kubernetes/deferred-cleanup.ts',
      because: `${perSecond(usualMany, deferred.seconds)} : ${perSecond(usualMany, atOnce.seconds)}`,
    },
  ];
}

async function loseNode(testbed: Testbed): Promise<Measurement> {
  const { admin } = testbed.cluster;
  return whileLed(testbed, slots, async () => {
    const id = await testbed.submit((attempt) => (attempt === 1 ? {} : undefined));
    const { metadata, spec } = await testbed.runningPod(id);
    testbed.kubelet.cutOff(spec.nodeName ?? '');
    const path = `/api/v1/namespaces/${namespace}/pods/${metadata.name}`;
    await until(async () => (await admin.ask('GET', path)).metadata.deletionTimestamp, 60, 'the pod is to be deleted');
    const marked = Date.now();
    const endOf = async () => (await readAttempts(testbed.store, id)).find(({ ended_at }) => ended_at !== undefined);
    const over = await until(endOf, 60, `${attemptNameOf(id, 1)} is over`);
    await testbed.waitUntilEnded(id, 30);
    const seconds = ((over?.ended_at ?? Number.NaN) - marked) / 1000;
    return {
      what: `dead node, its pod marked to its attempt over / ${targets.lost} s`,
      ratio: seconds / targets.lost,
      bound: { most: 1 },
      because: `${seconds.toFixed(1)} s`,
    };
  });
}

/** Ours between two halves of the minimal client's, so that whatever else the machine does falls on both. */
async function runManyJobs(testbed: Testbed): Promise<Measurement[]> {
  const half = () =>
    measureControlPlane(testbed.cluster, () => runMinimalClient(testbed.cluster, minimalNamespace, many / 2));
  const before = await half();
  const ours = await settleMany(testbed, fast, many);
  const after = await half();
  const minimalSeconds = before.value.seconds + after.value.seconds;
  const minimalPlane = before.milliseconds + after.milliseconds;
  const minimalOwn = before.value.cpuMilliseconds + after.value.cpuMilliseconds;
  const each = (milliseconds: number) => `${(milliseconds / many).toFixed(1)} ms`;
  return [
    {
      what: `settled a second / ${targets.rate} (the bar of a quiet machine)`,
      ratio: many / ours.seconds / targets.rate,
      because: `${many} jobs, ${perSecond(many, ours.seconds)}${load()}`,
    },
    {
      what: 'settled a second / completed a second by a minimal client',
      ratio: minimalSeconds / ours.seconds,
      bound: { least: 0.8 },
      because: `${perSecond(many, ours.seconds)} : ${perSecond(many, minimalSeconds)}`,
    },
    {
      what: "control plane for a job / for one of the minimal client's",
      ratio: ours.milliseconds / minimalPlane,
      bound: { most: 1.1 },
      because: `${each(ours.milliseconds)} : ${each(minimalPlane)} of CPU, ${(ours.requests / many).toFixed(1)} : ${((before.requests + after.requests) / many).toFixed(1)} requests`,
    },
    {
      what: `our controller for a job / ${targets.ownMilliseconds} ms`,
      ratio: ours.cpuMilliseconds / many / targets.ownMilliseconds,
      bound: { most: 1 },
      because: `${each(ours.cpuMilliseconds)} of CPU without Redis; the minimal client ${each(minimalOwn)}`,
    },
  ];
}

/** One job at a time. */
async function runFewJobs(testbed: Testbed): Promise<Measurement[]> {
  const { ours, minimal, parsing } = await whileLed(testbed, slots, async () => ({
    ...(await runSingleJobs(testbed, openNamespace, singleJobs)),
    parsing: await compareEventParsing(testbed),
  }));
  const row = (what: string, most: number, of: (job: SingleJob) => number, beside: string): Measurement => ({
    what: `one job: ${what} / ${most} ms`,
    ratio: quantile(ours.map(of), 0.5) / most,
    bound: { most: 1 },
    because: `${spread(ours.map(of))}${beside}`,
  });
  const minimalRuns = `; a minimal Job ${spread(minimal.map(({ running }) => running))}`;
  return [
    row('submitted to its Job there', targets.made, ({ made }) => made, ''),
    row('submitted to its pod running', targets.running, ({ running }) => running, minimalRuns),
    row('its pod ended to settled', targets.settled, ({ settled = Number.NaN, ended }) => settled - ended, load()),
    parsing,
  ];
}

/** The requests that a controller may make are its limit; that it makes as many with few jobs shows whether waiting ones slow it. */
async function letManyWait(testbed: Testbed): Promise<Measurement[]> {
  const settings = { ...slots, TRAWL_KUBE_RATE: String(slowRate) };
  return whileLed(testbed, settings, async ({ process }) => {
    await submitMany(testbed, fewWaiting);
    const few = await countRequests(testbed);
    await submitMany(testbed, waiting);
    const made = await countRequests(testbed);
    const megabytes = shareMegabytes(process.pid ?? 0);
    const rate = (perSecond: number) => `${perSecond.toFixed(1)} a second`;
    return [
      {
        what: `${waiting} jobs wait: requests made / with ${fewWaiting} that wait`,
        ratio: made / few,
        bound: { least: 0.9 },
        because: `${rate(made)} : ${rate(few)}, TRAWL_KUBE_RATE=${slowRate}${load()}`,
      },
      {
        what: `${waiting} jobs wait: requests made / those that TRAWL_KUBE_RATE allows`,
        ratio: made / slowRate,
        bound: { least: 0.9 },
        because: `${rate(made)} at ${slowRate} a second`,
      },
      {
        what: `${waiting} jobs wait: memory of the controller / ${targets.megabytes} MB`,
        ratio: megabytes / targets.megabytes,
        bound: { most: 1 },
        because: `${megabytes.toFixed(0)} MB`,
      },
    ];
  });
}

/** Returns how many requests the controller makes in a second, once the burst of its rate limit has passed. */
async function countRequests(testbed: Testbed): Promise<number> {
  const from = Date.now();
  await until(async () => (await countEnded(testbed, from)) >= slowRate, 60, 'the first jobs are settled');
  const [began, before] = [performance.now(), await countControllerRequests(testbed.cluster)];
  await pause(windowSeconds * 1000);
  const made = (await countControllerRequests(testbed.cluster)) - before;
  return made / ((performance.now() - began) / 1000);
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
