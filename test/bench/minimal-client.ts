import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { makeJob } from '../../src/runners/kubernetes/job-manifest.ts';
import { finalizer, jobNameLabel } from '../../src/runners/kubernetes/labels.ts';
import type { Cluster } from '../support/cluster/cluster.ts';
import { type Kube, KubeError, openKube } from '../support/cluster/kube.ts';
import { aShape } from '../support/cluster/runner.ts';
import { inLanes } from './rounds.ts';

/** The cost of a minimal client. */
export interface MinimalRun {
  /** From the first request until the last Job was complete. */
  readonly seconds: number;
  readonly cpuMilliseconds: number;
}

/**
 * Runs Jobs like ours by a minimal client in a process of its own: it makes them, takes the finalizer off each pod that has ended
 * and off each Job that is complete, and deletes that. It records nothing, and survives nothing.
 */
export async function runMinimalClient({ kubeconfig }: Cluster, namespace: string, count: number): Promise<MinimalRun> {
  const words = [import.meta.filename, kubeconfig, namespace, String(count)];
  const { stdout } = await promisify(execFile)(process.execPath, words);
  return JSON.parse(stdout) as MinimalRun;
}

interface KubeObject {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
  };
  readonly status?: { readonly phase?: string; readonly conditions?: readonly { type: string; status: string }[] };
}

const lanes = 32;
const never = new AbortController().signal;

/** Answers when nothing is left. */
async function runJobs(kube: Kube, namespace: string, count: number): Promise<MinimalRun> {
  const jobs = `/apis/batch/v1/namespaces/${namespace}/jobs`;
  const pods = `/api/v1/namespaces/${namespace}/pods`;
  const letGo = (path: string, { metadata: { name, uid } }: KubeObject) => {
    const body = { metadata: { uid, '$deleteFromPrimitiveList/finalizers': [finalizer] } };
    return kube.ask('PATCH', `${path}/${name}`, body);
  };
  const [endings, completions] = [waitFor(), waitFor()];
  const [podsGone, jobsGone] = [new Set<string>(), new Set<string>()];
  await follow(kube, pods, (pod, isGone) => {
    if (isGone) podsGone.add(pod.metadata.name);
    const job = pod.metadata.labels?.[jobNameLabel] ?? '';
    if (pod.status?.phase === 'Succeeded') endings.tell(job, pod);
  });
  await follow(kube, jobs, (job, isGone) => {
    if (isGone) jobsGone.add(job.metadata.name);
    const isComplete = job.status?.conditions?.some(({ type, status }) => type === 'Complete' && status === 'True');
    if (isComplete) completions.tell(job.metadata.name, job);
  });
  const began = performance.now();
  const before = process.cpuUsage();
  let completeAt = began;
  const settle = async (name: string) => {
    await letGo(pods, await endings.of(name));
    const job = await completions.of(name);
    completeAt = performance.now();
    await letGo(jobs, job);
    const body = { propagationPolicy: 'Background', preconditions: { uid: job.metadata.uid } };
    await kube.ask('DELETE', `${jobs}/${name}`, body);
  };
  const settled: Promise<void>[] = [];
  await inLanes(lanes, count, async (n) => {
    const name = `minimal-${n}`;
    const attempt = {
      name,
      jobId: 'minimal',
      attempt: n,
      endpoint: 'video',
      maxMs: 3_600_000,
    } as const;
    await make(kube, jobs, makeJob(attempt, aShape(namespace)));
    settled.push(settle(name));
  });
  await Promise.all(settled);
  while (podsGone.size < count || jobsGone.size < count) await pause(20);
  const { user, system } = process.cpuUsage(before);
  return { seconds: (completeAt - began) / 1000, cpuMilliseconds: (user + system) / 1000 };
}

/** Of Jobs that are made at the same moment, a quota lets some try again. */
async function make(kube: Kube, path: string, job: object): Promise<void> {
  try {
    await kube.ask('POST', path, job);
  } catch (error) {
    if (!(error instanceof KubeError) || error.status !== 409) throw error;
    await make(kube, path, job);
  }
}

function openAs(kubeconfig: string): Kube {
  const { clusters, users } = JSON.parse(readFileSync(kubeconfig, 'utf8'));
  const decode = (text: string) => Buffer.from(text, 'base64').toString();
  const [{ cluster }, { user }] = [clusters[0], users[0]];
  return openKube(cluster.server, decode(cluster['certificate-authority-data']), {
    cert: decode(user['client-certificate-data']),
    key: decode(user['client-key-data']),
  });
}

/** Watches until this process ends: the server ends a watch that it cannot feed fast enough. */
async function follow(kube: Kube, path: string, see: (object: KubeObject, isGone: boolean) => void): Promise<void> {
  const { metadata } = await kube.ask<{ metadata: { resourceVersion: string } }>('GET', path);
  let version = metadata.resourceVersion;
  const watch = async () => {
    for await (const { type, object } of kube.watch<KubeObject>(
      `${path}?watch=true&resourceVersion=${version}`,
      never,
    )) {
      if (type === 'ERROR') throw new Error(`${path} cannot be watched: ${JSON.stringify(object)}`);
      version = object.metadata.resourceVersion;
      see(object, type === 'DELETED');
    }
  };
  void (async () => {
    for (;;) await watch();
  })();
}

/** Objects by their Job's name, for those who wait for each. */
function waitFor() {
  const all = new Map<string, PromiseWithResolvers<KubeObject>>();
  const get = (name: string) => {
    const present = all.get(name) ?? Promise.withResolvers<KubeObject>();
    all.set(name, present);
    return present;
  };
  return {
    tell: (name: string, object: KubeObject) => get(name).resolve(object),
    of: (name: string) => get(name).promise,
  };
}

if (import.meta.main) {
  const [kubeconfig = '', namespace = '', count = ''] = process.argv.slice(2);
  console.log(JSON.stringify(await runJobs(openAs(kubeconfig), namespace, Number(count))));
  process.exit();
}
