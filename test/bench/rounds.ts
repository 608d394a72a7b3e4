import type { TestRedis } from '../support/redis.ts';

/** The cost of each call of a workload. */
export interface Cost {
  /** Time that passed. */
  readonly micros: number;
  /** Time that this process had a processor. */
  readonly nodeMicros: number;
  /** Time that Redis had a processor. */
  readonly redisMicros: number;
  /** Time that either had one: it says how fast this can be, whoever else uses the machine. */
  readonly bothMicros: number;
}

/** A workload that is measured again and again. */
export interface Workload {
  readonly redis: TestRedis;
  readonly calls: number;
  /** Prepares each run; it is not measured. */
  readonly prepare?: () => Promise<unknown>;
  readonly work: () => Promise<unknown>;
}

/**
 * Measures stretches in turn, so that whatever else the machine does meanwhile falls on all of them. Every second round
 * goes backwards. The first one only warms up and does not count.
 */
export async function alternate<const N extends string>(
  rounds: number,
  stretches: Readonly<Record<N, Workload>>,
): Promise<Record<N, Cost[]>> {
  const names = Object.keys(stretches) as N[];
  const costs = Object.fromEntries(names.map((name) => [name, [] as Cost[]])) as Record<N, Cost[]>;
  for (let round = 0; round <= rounds; round += 1) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const cost = await measure(stretches[name]);
      if (round > 0) costs[name].push(cost);
    }
  }
  return costs;
}

/** Makes calls with so many at a time under way. */
export async function inLanes(lanes: number, calls: number, call: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < calls) await call(next++);
  };
  await Promise.all(Array.from({ length: lanes }, work));
}

/** The middle one of the ratios that the rounds gave. */
export function ratioOf(above: readonly Cost[], below: readonly Cost[], of: keyof Cost): number {
  return median(above.map((cost, n) => cost[of] / below[n]![of]));
}

/** The middle one of the costs, in whole microseconds. */
export function microsOf(costs: readonly Cost[], of: keyof Cost): string {
  return `${median(costs.map((cost) => cost[of])).toFixed(0)} µs`;
}

/** Returns the rate in calls a second. */
export function ratePerSecond(costs: readonly Cost[]): string {
  return `${(1_000_000 / median(costs.map((cost) => cost.micros))).toFixed(0)}/s`;
}

/** Two kinds of calls beside each other: processor time in this process and in Redis, and how many a second there were. */
export function besideEachOther(ours: readonly Cost[], theirs: readonly Cost[]): string {
  const of = (costs: readonly Cost[]) =>
    `Node ${microsOf(costs, 'nodeMicros')} + Redis ${microsOf(costs, 'redisMicros')}, ${ratePerSecond(costs)}`;
  return `${of(ours)} : ${of(theirs)}`;
}

async function measure({ redis, calls, prepare, work }: Workload): Promise<Cost> {
  await prepare?.();
  const redisBefore = await readRedisMicros(redis);
  const nodeBefore = process.cpuUsage();
  const began = performance.now();
  await work();
  const micros = (performance.now() - began) * 1000;
  const { user, system } = process.cpuUsage(nodeBefore);
  const [nodeMicros, redisMicros] = [user + system, (await readRedisMicros(redis)) - redisBefore];
  return {
    micros: micros / calls,
    nodeMicros: nodeMicros / calls,
    redisMicros: redisMicros / calls,
    bothMicros: (nodeMicros + redisMicros) / calls,
  };
}

/** Processor time of a Redis so far, by its own account: /proc counts in hundredths of a second. */
async function readRedisMicros({ connection }: TestRedis): Promise<number> {
  const told = String(await connection.send(['INFO', 'cpu']));
  const seconds = [...told.matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gm)].map(([, value]) => Number(value));
  if (seconds.length !== 2) throw new Error('INFO cpu does not tell how much time Redis used');
  return seconds.reduce((sum, value) => sum + value, 0) * 1_000_000;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
