import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { archiveDays, removeArchivedDays } from '../../src/archive/archive-days.ts';
import { makeMetrics, renderMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { startGauges } from '../../src/controller/gauges.ts';
import { startLedgerCheck } from '../../src/controller/ledger-check.ts';
import { openFolder } from '../../src/objects/folder-store.ts';
import { findOldFiles } from '../../src/store/jobs/kept-files.ts';
import { listJobs } from '../../src/store/jobs/list-jobs.ts';
import { findUnserved, listOverdue, readActiveJobs } from '../../src/store/jobs/open-work.ts';
import { requeueDelayed } from '../../src/store/jobs/requeue-delayed.ts';
import { readLedgerWalk } from '../../src/store/log/ledger-walk.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { readMemory } from '../../src/store/redis/redis-memory.ts';
import { sweepRecord } from '../../src/store/sweep-record.ts';
import { endJobs, makeAccounts, type StoredCaller } from '../support/populate.ts';
import { storeOf, type TestStore, takeJob } from '../support/record.ts';
import { aFolder, aLog, startTestRedis } from '../support/redis.ts';
import { watchTurns } from '../support/turn-length.ts';
import { until } from '../support/until.ts';

/** ROUNDS=20000, the default of `make soak`, makes 1,000,000 jobs; fewer rounds make fewer. */
const rounds = process.env.ROUNDS === undefined ? null : Number(process.env.ROUNDS);
const hour = 3_600_000;
const lifetimes = { job: 720 * hour, line: 2160 * hour, file: 24 * hour };
const repeats = 20;
/** Processor time is that of so many runs, and so many times: a record of any size and a busy machine have the same clock for it. */
const timed = { runs: rounds === null ? 1 : 100, times: 20 };
const idleMs = rounds === null ? 0 : 3_000;

/** Cost of one piece of work, each the least of several runs. */
interface Cost {
  readonly commands: number;
  readonly outputBytes: number;
  /** Processor time of Redis, without what it takes with nobody asking. */
  readonly redisMs: number;
  /** Processor time of the process that asks. */
  readonly processMs: number;
}

interface Figures {
  readonly bytesOfAccount: number;
  readonly bytesOfJob: number;
  /** Processor time of the check of all ledgers, for each account. */
  readonly verifyMs: number;
  readonly longestTurnMs: number;
  readonly costs: Readonly<Record<'scrape' | 'pass' | 'sweep' | 'list' | 'rare list' | 'log show', Cost>>;
}

interface Size {
  readonly accounts: number;
  readonly jobsOfEach: number;
}

/** Fills a record of each size and measures both in turns: whatever else the machine does meets both alike. */
async function measure(...sizes: readonly [Size, Size]): Promise<{ readonly few: Figures; readonly many: Figures }> {
  const servers: Awaited<ReturnType<typeof startTestRedis>>[] = [];
  const records: (Awaited<ReturnType<typeof fill>> & Awaited<ReturnType<typeof openWorks>>)[] = [];
  try {
    for (const { accounts, jobsOfEach } of sizes) {
      const redis = await startTestRedis();
      servers.push(redis);
      const store = storeOf(redis.connection);
      // Nothing here reads its file, which Redis would write anew for each doubling.
      await redis.connection.send(['CONFIG', 'SET', 'appendonly', 'no']);
      const filled = await fill(store, accounts, jobsOfEach);
      records.push({ ...filled, ...(await openWorks(store, filled.caller)) });
    }
    const costs = await costsOf(records);
    const figures: Figures[] = [];
    for (const [n, { store, bytesOfAccount, bytesOfJob }] of records.entries())
      figures.push({
        ...{ bytesOfAccount, bytesOfJob, costs: costs[n]! },
        ...(await measureVerification(store, sizes[n]!.accounts)),
      });
    return { few: figures[0]!, many: figures[1]! };
  } finally {
    for (const { close } of records) await close();
    for (const redis of servers) await redis.stop();
  }
}

/** Returns one of the accounts; the others are garbage then, which would cost this process time at each look. */
async function fill(store: TestStore, accounts: number, jobsOfEach: number) {
  const used = async () => (await readMemory(store.connection, null)).usedBytes;
  const empty = await used();
  const callers = await makeAccounts(store, accounts, 2 * jobsOfEach);
  const withAccounts = await used();
  await endJobs(store, callers, jobsOfEach);
  return {
    caller: callers[0]!,
    bytesOfAccount: (withAccounts - empty) / accounts,
    bytesOfJob: ((await used()) - withAccounts) / (accounts * jobsOfEach),
  };
}

type Kind = keyof Figures['costs'];

/** Pieces of work of one record. */
interface Works {
  readonly store: TestStore;
  readonly works: Readonly<Record<Kind, () => Promise<unknown>>>;
  readonly close: () => Promise<void>;
}

async function openWorks(store: TestStore, { accountId }: StoredCaller): Promise<Works> {
  const { folder, remove } = aFolder();
  const [metrics, { log }] = [makeMetrics(), aLog()];
  const leading = { isLeading: () => true, oldestUnsettled: () => null, backupsScheduled: false };
  const gauges = startGauges({ store, metrics, log, ...leading });
  const objects = await openFolder({ folder, seal: makeSeal({ secret: Buffer.alloc(32) }), now: Date.now });
  const list = (status?: 'NotFound') => () => listJobs(store, accountId, { status, limit: 20, after: null });
  const pass = async () => {
    await requeueDelayed(store);
    await takeJob(store, 'another', 10);
    await findUnserved(store, store.clock.now());
    await readActiveJobs(store);
    await listOverdue(store, store.clock.now());
  };
  const goOn = () => true;
  const fail = (error: unknown) => Promise.reject(error);
  const sweep = async () => {
    await sweepRecord(store, lifetimes);
    await findOldFiles(store, lifetimes.file);
    await removeArchivedDays(store, objects, lifetimes.line, goOn, fail);
    await archiveDays({ store, objects, lifetimes, goOn, metrics, log });
  };
  const works = {
    scrape: () => renderMetrics(metrics),
    ...{ pass, sweep },
    list: list(),
    'rare list': list('NotFound'),
    'log show': () => readLines(store, accountId, 100),
  };
  const close = async () => {
    await gauges.close();
    remove();
  };
  return { store, works, close };
}

async function costsOf(records: readonly Works[]): Promise<Figures['costs'][]> {
  const costs = records.map(() => ({}) as Record<Kind, Cost>);
  for (const kind of Object.keys(records[0]!.works) as Kind[]) {
    const times: Times[][] = records.map(() => []);
    const idle: Times[] = [];
    for (const { store } of records) idle.push(await timesOf(store, 1, () => pause(idleMs)));
    for (let n = 0; n < timed.times; n++)
      for (const [record, { store, works }] of records.entries())
        times[record]!.push(await timesOf(store, timed.runs, works[kind]));
    for (const [record, { store, works }] of records.entries())
      costs[record]![kind] = { ...(await countOf(store, works[kind])), ...leastOf(times[record]!, idle[record]!) };
  }
  return costs;
}

async function countOf(
  store: TestStore,
  work: () => Promise<unknown>,
): Promise<Pick<Cost, 'commands' | 'outputBytes'>> {
  const runs: Pick<Cost, 'commands' | 'outputBytes'>[] = [];
  for (let n = 0; n < repeats; n++) {
    await store.connection.send(['CONFIG', 'RESETSTAT']);
    await work();
    const told = String(await store.connection.send(['INFO', 'everything']));
    const rows = [...told.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].filter(
      // The commands of a script count.
      ([, name]) => !/^(?:config|info|ping|client|eval|evalsha)\b/.test(name!),
    );
    runs.push({
      commands: rows.reduce((sum, [, , calls]) => sum + Number(calls), 0),
      outputBytes: Number(/^total_net_output_bytes:(\d+)/m.exec(told)?.[1]),
    });
  }
  return {
    commands: Math.min(...runs.map(({ commands }) => commands)),
    outputBytes: Math.min(...runs.map(({ outputBytes }) => outputBytes)),
  };
}

function leastOf(times: readonly Times[], idle: Times): Pick<Cost, 'redisMs' | 'processMs'> {
  const ofIdle = (ms: number) => (idleMs === 0 ? 0 : (idle.redisMs * ms) / idle.ms);
  return {
    redisMs: Math.min(...times.map(({ redisMs, ms }) => (redisMs - ofIdle(ms)) / timed.runs)),
    processMs: Math.min(...times.map(({ processMs }) => processMs / timed.runs)),
  };
}

/** Milliseconds that some runs took, and the processor time of Redis and of this process in them. */
type Times = Readonly<Record<'ms' | 'redisMs' | 'processMs', number>>;

async function timesOf(store: TestStore, runs: number, work: () => Promise<unknown>): Promise<Times> {
  const [redisBefore, before, began] = [await redisMs(store), process.cpuUsage(), performance.now()];
  for (let n = 0; n < runs; n++) await work();
  const { user, system } = process.cpuUsage(before);
  const ms = performance.now() - began;
  return { ms, redisMs: (await redisMs(store)) - redisBefore, processMs: (user + system) / 1000 };
}

async function redisMs(store: TestStore): Promise<number> {
  const told = String(await store.connection.send(['INFO', 'cpu']));
  const seconds = (part: string) => Number(new RegExp(`^used_cpu_${part}:(\\S+)`, 'm').exec(told)?.[1]);
  return 1000 * (seconds('sys') + seconds('user'));
}

/** Lets the hourly check run once, and sees for how long it keeps its process from other work. */
async function measureVerification(
  store: TestStore,
  accounts: number,
): Promise<Pick<Figures, 'verifyMs' | 'longestTurnMs'>> {
  const before = process.cpuUsage();
  const endWatch = watchTurns();
  const check = startLedgerCheck({ store, metrics: makeMetrics(), log: aLog().log, isLeading: () => true, tickMs: 1 });
  await until(async () => (await readLedgerWalk(store)).lastProblems === 0, 3600, 'every ledger is verified');
  const longestTurnMs = endWatch();
  await check.close();
  const { user, system } = process.cpuUsage(before);
  return { verifyMs: (user + system) / 1000 / accounts, longestTurnMs };
}

describe('the cost of upkeep', () => {
  it('of 1,000 accounts is that of 100: no scrape, pass or sweep looks at accounts without due work', async () => {
    const { few, many } = await measure({ accounts: 100, jobsOfEach: 1 }, { accounts: 1000, jobsOfEach: 1 });
    for (const name of ['scrape', 'pass', 'sweep'] as const) {
      const [before, after] = [few.costs[name], many.costs[name]];
      expect(after.commands, `commands of a ${name}`).to.be.within(1, before.commands);
      expect(after.outputBytes, `bytes of a ${name}`).to.be.at.most(1.5 * before.outputBytes);
    }
  });

  if (rounds !== null)
    it('of a large record is at most 1.5 times that of 1,000 jobs, with as many jobs of each account', async function () {
      this.timeout(4 * hour);
      const jobs = Math.min(1_000_000, 50 * rounds);
      const jobsOfEach = 10;
      const { few, many } = await measure(
        { accounts: 1000 / jobsOfEach, jobsOfEach },
        { accounts: Math.max(1, Math.round(jobs / jobsOfEach)), jobsOfEach },
      );
      show(jobs, few, many);
      expect(many.longestTurnMs, 'milliseconds for which the check of all ledgers keeps others waiting').to.be.below(
        50,
      );
      for (const name of Object.keys(many.costs) as Kind[]) {
        expect(many.costs[name].commands, `commands of a ${name}`).to.be.at.most(few.costs[name].commands);
        for (const time of ['redisMs', 'processMs'] as const)
          expect(many.costs[name][time], `${time} of a ${name}`).to.be.at.most(1.5 * few.costs[name][time] + 0.05);
      }
    });
});

function show(jobs: number, few: Figures, many: Figures): void {
  const row = (name: string, before: number, after: number, unit: string) =>
    console.log(`      ${name}: ${after.toFixed(3)} ${unit}, ${(after / before).toFixed(2)} × of 1,000 jobs`);
  console.log(`      ${jobs} jobs of ${jobs / 10} accounts`);
  row('bytes of an account with a key', few.bytesOfAccount, many.bytesOfAccount, 'B');
  row('bytes of an ended job', few.bytesOfJob, many.bytesOfJob, 'B');
  for (const [name, cost] of Object.entries(many.costs)) {
    const before = few.costs[name as keyof Figures['costs']];
    row(`${name}, processor time of Redis`, before.redisMs, cost.redisMs, 'ms');
    row(`${name}, processor time of its process`, before.processMs, cost.processMs, 'ms');
    row(`${name}, number of commands`, before.commands, cost.commands, 'commands');
    row(`${name}, answers of Redis`, before.outputBytes, cost.outputBytes, 'B');
  }
  row('check of all ledgers, for each account', few.verifyMs, many.verifyMs, 'ms');
  row('longest turn of the event loop during it', few.longestTurnMs, many.longestTurnMs, 'ms');
}
