import { createHash, randomUUID } from 'node:crypto';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { makeSeal } from '../../../src/base/seal.ts';
import { isEnded, type Job } from '../../../src/model/job.ts';
import { hasOpenAttempt } from '../../../src/model/next.ts';
import { objectPrefix } from '../../../src/model/outcome.ts';
import { openFolder } from '../../../src/objects/folder-store.ts';
import type { ObjectStore } from '../../../src/objects/object-store.ts';
import { attemptNumberOf, jobIdOf } from '../../../src/runners/runner.ts';
import { readJob } from '../../../src/store/jobs/read-job.ts';
import { readLedger } from '../../../src/store/log/read-ledger.ts';
import { verifyLedger } from '../../../src/store/log/verify-ledger.ts';
import { someMetadata } from '../jobs.ts';
import { admitted, anAccount, storeOf, type TestStore, theJob } from '../record.ts';
import { aFolder, startTestRedis, type TestRecord } from '../redis.ts';
import { until } from '../until.ts';
import { lastingContradictions } from '../whole-record.ts';
import { type Cluster, type ClusterOptions, startCluster } from './cluster.ts';
import { type FakeKubelet, type Plan, startFakeKubelet } from './fake-kubelet.ts';
import { type Ending, endings, type Pod } from './pod.ts';
import { aShape, countLeft, makeWorkersNamespace } from './runner.ts';

export const namespace = 'workers';
const secret = Buffer.alloc(32, 5);
const jobLabel = 'batch.kubernetes.io/job-name';

/** A cluster with nodes, a record, and a folder of finished files: everything but controllers. */
export interface Testbed {
  readonly cluster: Cluster;
  readonly kubelet: FakeKubelet;
  readonly redis: TestRecord;
  readonly store: TestStore;
  readonly folder: string;
  readonly secret: Buffer;
  readonly objects: ObjectStore;
  /** The account of the submitted jobs. */
  readonly account: string;
  /** Submits a download; where the plan says nothing of an attempt, it delivers at once. */
  submit(plan?: PlanOf): Promise<string>;
  job(id: string): Promise<Job>;
  waitUntilEnded(id: string, seconds: number): Promise<Job>;
  /** The name of the pod of an attempt, as soon as it runs. */
  runningPod(job: string, attempt?: number): Promise<Pod>;
  /** Returns missing and double charges, and the problems of the ledger. */
  findProblems(ids: readonly string[]): Promise<string[]>;
  /** Waits until neither a Job nor a pod is left, of all jobs or of one. */
  waitUntilEmpty(seconds: number, id?: string): Promise<void>;
  /** Files of these jobs that are not the result of a completed one. */
  listOrphanFiles(ids: readonly string[]): Promise<string[]>;
  stop(): Promise<void>;
}

/** The course of an attempt; `delivers` stores its file and returns the ending of its pod. */
export type PlanOf = (attempt: number, delivers: () => Promise<Ending>) => Plan | undefined;

export interface TestbedOptions extends ClusterOptions {
  readonly nodes?: number;
  /** Starts the Redis of the record, when it is not a single one. */
  readonly startRecord?: () => Promise<TestRecord>;
  /** A cluster whose namespace is set up; without it the testbed starts its own. */
  readonly cluster?: Cluster;
  /** The object store, a folder when left out. */
  readonly objects?: ObjectStore;
  /** The course of an attempt whose job was not submitted here; without one it delivers after a second. */
  readonly planOf?: (attempt: string, delivers: () => Promise<Ending>) => Plan | undefined;
  /** More settings of the workers that its namespace lets in. */
  readonly workerEnv?: Readonly<Record<string, string>>;
}

/** Starts a testbed. */
export async function startTestbed({ nodes = 2, ...options }: TestbedOptions = {}): Promise<Testbed> {
  const { folder, remove } = aFolder();
  const redis = await (options.startRecord?.() ?? startTestRedis({ fsync: 'always' }));
  const store = storeOf(redis.connection);
  const seal = makeSeal({ secret, old: null });
  const objects = options.objects ?? (await openFolder({ folder: join(folder, 'objects'), seal, now: Date.now }));
  const cluster = options.cluster ?? (await startCluster(options));
  const plans = new Map<string, PlanOf>();
  const attemptOf = (pod: Pod) => pod.metadata.labels?.[jobLabel] ?? '';
  const planFor = (name: string): Plan => {
    const [id, attempt] = [jobIdOf(name), attemptNumberOf(name)];
    const delivers = () => deliver(store, objects, id, attempt);
    const plan = plans.get(id);
    if (plan) return plan(attempt, delivers) ?? { runMs: 50, ending: delivers };
    return options.planOf?.(name, delivers) ?? { runMs: 1_000, ending: delivers };
  };
  const kubelet = await startFakeKubelet(cluster, { nodes, plan: (pod) => planFor(attemptOf(pod)) });
  if (!options.cluster) await makeWorkersNamespace(cluster, namespace, aShape(namespace, options.workerEnv));
  const caller = await anAccount(store, { credits: 1_000_000, max_open: 100_000 });

  const job = (id: string) => readPatiently(store, id);
  return {
    ...{ cluster, kubelet, redis, store, folder, secret, objects, job, account: caller.accountId },
    async submit(plan = () => undefined) {
      const id = randomUUID();
      plans.set(id, plan);
      return admitted(store, caller, { id });
    },
    waitUntilEnded: (id, seconds) =>
      until(
        async () => {
          const found = await job(id);
          return isEnded(found.status) && found;
        },
        seconds,
        `job ${id} ends`,
      ) as Promise<Job>,
    runningPod: (id, attempt = 1) =>
      until(
        () => kubelet.running().find((pod) => attemptOf(pod) === `${id}-${attempt}`),
        30,
        `attempt ${attempt} of ${id} runs`,
      ) as Promise<Pod>,
    findProblems: (ids) => listProblems(store, caller.accountId, ids),
    waitUntilEmpty: async (seconds, id) => {
      await until(async () => (await countLeft(cluster, namespace, id)) === 0, seconds, 'no Job and no pod is left');
    },
    listOrphanFiles: async (ids) => {
      const results = (await Promise.all(ids.map(job))).map(({ delivered }) => delivered?.key);
      return globSync('????????-*/*/*', { cwd: join(folder, 'objects') }).filter((key) => !results.includes(key));
    },
    async stop() {
      await kubelet.stop();
      if (!options.cluster) await cluster.stop();
      await redis.stop();
      remove();
    },
  };
}

/** Reads a job; while parts of the cluster start, this process may be too busy to hear an answer of the record in time. */
async function readPatiently(store: TestStore, id: string): Promise<Job> {
  const read = () =>
    theJob(store, id).catch((error: { code?: string }) => {
      if (error.code !== 'unavailable') throw error;
      return null;
    });
  return (await until(read, 20, `the record tells of ${id}`))!;
}

/** Stores the file of an attempt, while somebody waits for it; answers how its worker tells so. */
async function deliver(store: TestStore, objects: ObjectStore, id: string, attempt: number): Promise<Ending> {
  const isOver = async () => {
    // As a worker asks its gateway: until it is told, also while the record is away.
    const read = () =>
      readJob(store, id).then(
        (job) => ({ job }),
        () => null,
      );
    const { job } = (await until(read, 60, `the record tells of ${id}`)) ?? { job: null };
    return !job || isEnded(job.status) || job.attempt !== attempt || !hasOpenAttempt(job);
  };
  if (await isOver()) return endings.failure(143);
  const words = Buffer.from(`the film of ${id}, attempt ${attempt}`);
  const prefix = objectPrefix(id, attempt);
  const key = `${prefix}media.mp4`;
  await objects.keep(key, words);
  // Nobody waits for it any more: the sweep would remove it a day later.
  if (await isOver()) await objects.remove(prefix);
  const sha256 = createHash('sha256').update(words).digest('hex');
  const file = { key, bytes: words.length, sha256, content_type: 'video/mp4' };
  return endings.success(JSON.stringify({ is: 'done', metadata: someMetadata, delivered: file }));
}

async function listProblems(store: TestStore, account: string, ids: readonly string[]): Promise<string[]> {
  const charges = (await readLedger(store, account, 1_000_000)).filter(({ kind }) => kind === 'charge');
  const counted = Map.groupBy(charges, (entry) => entry.job ?? '');
  const { problems } = await verifyLedger(store, account);
  const jobs = await Promise.all(ids.map((id) => theJob(store, id)));
  const wrong = jobs.filter(({ id, status }) => {
    return (counted.get(id)?.length ?? 0) !== (status === 'CompletedJob' ? 1 : 0);
  });
  const found = await lastingContradictions(store.connection);
  return [...problems.map(String), ...wrong.map(({ id, status }) => `${id} is ${status}`), ...found];
}
