import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { keys } from '../../src/store/keys.ts';
import { startTestController, type TestController } from '../support/cluster/controller.ts';
import { hasAny } from '../support/cluster/runner.ts';
import { namespace, type PlanOf, type Scene } from '../support/cluster/scene.ts';
import { until } from '../support/until.ts';
import { cpuMicros } from './load.ts';
import { costOf, type PlaneCost } from './plane.ts';
import { inLanes } from './rounds.ts';

export interface SettledRun extends PlaneCost {
  /** From the first submission until the last job was settled. */
  readonly seconds: number;
  /** Processor time of our controller until nothing was left. */
  readonly cpuMilliseconds: number;
}

export type Settings = Readonly<Record<string, string>>;

const lanes = 32;
const lookMilliseconds = 250;
const patientSeconds = 300;

/** As long as a pod runs. */
export const runMilliseconds = 200;
const plan: PlanOf = (_, delivers) => ({ runMs: runMilliseconds, ending: delivers });

/** Submits jobs whose pods deliver soon, in lanes. */
export async function submitMany(scene: Scene, count: number): Promise<string[]> {
  const ids: string[] = [];
  await inLanes(lanes, count, async () => void ids.push(await scene.submit(plan)));
  return ids;
}

/** Does something while one controller leads that is set up as an operator would. */
export async function whileLed<T>(
  scene: Scene,
  env: Settings,
  use: (controller: TestController) => Promise<T>,
  defersCleanup = true,
): Promise<T> {
  const settings = { TRAWL_LOG_LEVEL: 'info', ...env };
  const controller = await startTestController(scene, { isUsual: true, env: settings, defersCleanup });
  try {
    await until(() => controller.isLeading(), 30, 'the controller leads');
    return await use(controller);
  } finally {
    await controller.end('SIGTERM');
  }
}

/** Lets our controller settle jobs, and refuses to measure when one is not charged once. */
export function settleMany(scene: Scene, env: Settings, count: number, defersCleanup = true): Promise<SettledRun> {
  const settle = async ({ process }: TestController): Promise<SettledRun> => {
    const cpu = () => cpuMicros(process.pid ?? 0) / 1000;
    const used = cpu();
    const { value, ...cost } = await costOf(scene.cluster, async () => {
      const began = Date.now();
      const ids = await submitMany(scene, count);
      await whileNot(async () => (await countEnded(scene, began)) >= count);
      const seconds = ((await lastEnd(scene)) - began) / 1000;
      await whileNot(async () => !(await hasAny(scene.cluster, namespace)));
      return { ids, seconds, cpuMilliseconds: cpu() - used };
    });
    const wrongs = await scene.wrongs(value.ids);
    if (wrongs.length > 0) throw new Error(`not as it should be: ${wrongs.slice(0, 3).join(', ')}`);
    return { ...cost, seconds: value.seconds, cpuMilliseconds: value.cpuMilliseconds };
  };
  return whileLed(scene, env, settle, defersCleanup);
}

/** How many jobs have ended since, by the record's own clock. */
export async function countEnded({ store }: Scene, from: number): Promise<number> {
  return Number(await store.connection.read(['ZCOUNT', keys.ended, String(from), '+inf']));
}

/** The memory of a process in megabytes; of what others use too, only its share. */
export function shareMegabytes(pid: number): number {
  return Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) / 1024;
}

async function lastEnd({ store }: Scene): Promise<number> {
  const found = await store.connection.read(['ZRANGE', keys.ended, '0', '0', 'REV', 'WITHSCORES']);
  return Number((found as string[])[1]);
}

/** Looks seldom: a look costs those who are measured. */
async function whileNot(condition: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + patientSeconds * 1000;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`Not within ${patientSeconds} s`);
    await pause(lookMilliseconds);
  }
}
