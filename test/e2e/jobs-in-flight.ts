import { expect } from 'chai';
import { type ChartGround, controllerOf, namespace, workersNamespace } from '../support/cluster/chart-ground.ts';
import { kubectl } from '../support/cluster/kubectl.ts';
import type { Json } from '../support/json.ts';
import { until } from '../support/until.ts';

/** Jobs that all download until they are let go. */
export interface JobsInFlight {
  readonly ids: readonly string[];
  /** Names of the pods of their workers. */
  readonly pods: readonly string[];
  readonly letGo: () => void;
}

export const maxInFlight = 20;

/** Submits so many jobs, and waits until the worker of each has begun to download. */
export async function submitInFlight(ground: ChartGround, key: string, count = maxInFlight): Promise<JobsInFlight> {
  const { source } = ground;
  const letGo = source.hold();
  source.forget();
  const ids: string[] = [];
  while (ids.length < count) ids.push(await ground.submit(key, `/drip/${ids.length}/clip.mp4`));
  const isUnderWay = () => new Set(source.asked.filter((path) => path.startsWith('/drip/'))).size === count;
  await until(isUnderWay, 120, `${count} workers download`);
  return { ids, letGo, pods: await listWorkers(ground) };
}

/** Returns the names of the pods of workers that run. */
export async function listWorkers({ cluster }: ChartGround): Promise<string[]> {
  const words = ['get', 'pods', '-n', workersNamespace, '--field-selector=status.phase=Running', '-o', 'name'];
  return (await kubectl(cluster, words)).split('\n').filter(Boolean).sort();
}

/** Checks that these workers run and no others; says which attempts the controllers saw end otherwise. */
export async function expectSameWorkers(ground: ChartGround, pods: readonly string[]): Promise<void> {
  const found = await listWorkers(ground);
  const words = ['logs', '-n', namespace, '-l', 'app.kubernetes.io/component=controller', '--tail=-1'];
  const said = await kubectl(ground.cluster, words).catch(String);
  const ends = said.split('\n').filter((line) => line.includes('the attempt ended'));
  expect(found, ends.join('\n')).to.deep.equal(pods);
}

/** Waits until all of these jobs have ended, and returns those that did not complete. */
export async function listFailed(ground: ChartGround, key: string, ids: readonly string[]): Promise<Json[]> {
  const ended = async (): Promise<Json[] | null> => {
    const { jobs } = await ground.ask(key, '/v1/jobs?limit=100').catch(() => ({}));
    const isOver = jobs && ids.every((id) => jobs.some((job: Json) => job.id === id && job.success !== null));
    return isOver ? jobs : null;
  };
  const jobs = (await until(ended, 120, `${ids.length} jobs end`)) ?? [];
  return jobs.filter(({ id, success }) => ids.includes(id) && success !== true);
}

/** Checks that all of these jobs complete, and that an account which had so many credits paid one for each. */
export async function expectEachChargedOnce(
  ground: ChartGround,
  release: string,
  { key, credits, ids }: { readonly key: string; readonly credits: number; readonly ids: readonly string[] },
): Promise<void> {
  expect(await listFailed(ground, key, ids)).to.deep.equal([]);
  expect(await ground.ask(key, '/v1/usage')).to.include({ remaining: credits - ids.length, held: 0 });
  const line = ['node', '/opt/trawl/src/main.ts', 'admin', 'ledger', 'verify', '--json'];
  const words = ['exec', '-n', namespace, controllerOf(release), '--', ...line];
  let complaint = '';
  const verify = () =>
    kubectl(ground.cluster, words).catch((error: Error) => {
      complaint = error.message;
      return '';
    });
  // kubectl may choose a pod that ends.
  const said = await until(verify, 20, 'the ledger is verified').catch((cause: Error) => {
    throw new Error(complaint, { cause });
  });
  expect(JSON.parse(said)).to.deep.include({ ok: true, problems: [] });
}
