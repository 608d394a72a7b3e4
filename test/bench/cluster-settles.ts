import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { keys } from '../../src/store/keys.ts';
import { startTestController, type TestController } from '../support/cluster/controller.ts';
import { hasAny } from '../support/cluster/runner.ts';
import { namespace, type PlanOf, type Testbed } from '../support/cluster/testbed.ts';
import { until } from '../support/until.ts';
import { type ControlPlaneCost, measureControlPlane } from './control-plane-cost.ts';
import { cpuMicros } from './load.ts';
import { inLanes } from './rounds.ts';

export interface SettleRun extends ControlPlaneCost {
  /** From the first submission until the last job was settled. */
  readonly seconds: number;
  /** Processor time of our controller until nothing was left. */
  readonly cpuMilliseconds: number;
}

export type Settings = Readonly<Record<string, string>>;

/** A job with files has the score of its end minus this among the jobs that have ended. */
const keptFileShift = 10_000_000_000_000;
const lanes = 32;
const lookMilliseconds = 250;
const patientSeconds = 300;

/** Settings of the controller that its workers have too. */
export const sharedSettings: Settings = { TRAWL_LOG_LEVEL: 'info' };

/** As long as a pod runs. */
export const runMilliseconds = 200;
const plan: PlanOf = (_, delivers) => ({ runMs: runMilliseconds, ending: delivers });

/** Submits jobs whose pods deliver soon, in lanes. */
export async function submitMany(testbed: Testbed, count: number): Promise<string[]> {
  const ids: string[] = [];
  await inLanes(lanes, count, async () => void ids.push(await testbed.submit(plan)));
  return ids;
}

/** Does something while one controller leads that is set up as an operator would. */
export async function whileLed<T>(
  testbed: Testbed,
  env: Settings,
  use: (controller: TestController) => Promise<T>,
  defersCleanup = true,
): Promise<T> {
  const controller = await startTestController(testbed, {
    isUsual: true,
    env: { ...sharedSettings, ...env },
    defersCleanup,
  });
  try {
    await until(() => controller.isLeading(), 30, 'the controller leads');
    return await use(controller);
  } finally {
    await controller.end('SIGTERM');
  }
}

/** Lets our controller settle jobs, and refuses to measure when one is not charged once. */
export function settleMany(testbed: Testbed, env: Settings, count: number, defersCleanup = true): Promise<SettleRun> {
  const settle = async ({ process }: TestController): Promise<SettleRun> => {
    const cpu = () => cpuMicros(process.pid ?? 0) / 1000;
    const used = cpu();
    const { value, ...cost } = await measureControlPlane(testbed.cluster, async () => {
      const began = Date.now();
      const ids = await submitMany(testbed, count);
      await whileNot(async () => (await countEnded(testbed, began)) >= count);
      const seconds = ((await lastEnd(testbed)) - began) / 1000;
      await whileNot(async () => !(await hasAny(testbed.cluster, namespace)));
      return { ids, seconds, cpuMilliseconds: cpu() - used };
    });
    const wrongs = await testbed.findProblems(value.ids);
    if (wrongs.length > 0) throw new Error(`not as it should be: ${wrongs.slice(0, 3).join(', ')}`);
    return { ...cost, seconds: value.seconds, cpuMilliseconds: value.cpuMilliseconds };
  };
  return whileLed(testbed, env, settle, defersCleanup);
}

/** Returns the number of jobs that have ended since, by the clock of the record. */
export async function countEnded({ store }: Testbed, from: number): Promise<number> {
  const [kept, others] = await store.connection.readAll([
    ['ZCOUNT', keys.ended, String(from - keptFileShift), '(0'],
    ['ZCOUNT', keys.ended, String(from), '+inf'],
  ]);
  return Number(kept) + Number(others);
}

/** The memory of a process in megabytes; of what others use too, only its share. */
export function shareMegabytes(pid: number): number {
  return Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) / 1024;
}

async function lastEnd({ store }: Testbed): Promise<number> {
  const last = ['LIMIT', '0', '1', 'WITHSCORES'];
  const [, kept] = await store.connection.read(['ZREVRANGEBYSCORE', keys.ended, '(0', '-inf', ...last]);
  const [, other] = await store.connection.read(['ZREVRANGEBYSCORE', keys.ended, '+inf', '0', ...last]);
  return Math.max(Number(kept ?? -keptFileShift) + keptFileShift, Number(other ?? 0));
}

/** Looks seldom: a look costs those who are measured. */
async function whileNot(condition: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + patientSeconds * 1000;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`Not within ${patientSeconds} s: ${condition}`);
    await pause(lookMilliseconds);
  }
}
