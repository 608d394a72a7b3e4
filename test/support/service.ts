import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeLog } from '../../src/base/log.ts';
import { isEnded, type Job } from '../../src/model/job.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { listOpen } from '../../src/store/jobs/open-work.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { readLedger } from '../../src/store/log/read-ledger.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { findRecord } from '../../src/store/open-store.ts';
import { connect } from '../../src/store/redis/connection.ts';
import type { Json } from './json.ts';
import { type AccountOptions, anAccount, anotherKey, storeOf, type TestStore } from './record.ts';
import { aFolder, patient } from './redis.ts';
import { until } from './until.ts';
import { type RunningUp, startUp } from './up.ts';
import { lastingContradictions } from './whole-record.ts';

/** An account that may ask for as much as a test wants. */
export interface Customer {
  readonly account: string;
  readonly key: string;
}

/** A `./trawl up` in a folder of its own, with all that a test may do to it. */
export interface Service {
  readonly folder: string;
  readonly data: string;
  /** Starts the service, again when it has ended; settings given here hold for this start alone. */
  start(env?: Readonly<Record<string, string>>): Promise<RunningUp>;
  /** The one that was started last. */
  up(): RunningUp;
  /** Ends it as its users do; gives its exit code. */
  stop(): Promise<number | string>;
  /** Kills every process of it at once. */
  killAll(): Promise<void>;
  /** Its processes whose command line fits. */
  processes(command?: RegExp): number[];
  /** Opens its record beside it, for as long as `use` takes. */
  withStore<T>(use: (store: TestStore) => Promise<T>): Promise<T>;
  aCustomer(wanted?: AccountOptions): Promise<Customer>;
  ask(
    key: string,
    path: string,
    headers?: Readonly<Record<string, string>>,
  ): Promise<{ status: number; headers: Headers; json: Json }>;
  /** The id of a job that must be accepted; while the service can take nothing it is asked again, as the same request. */
  submit(key: string, path: string): Promise<string>;
  /** Waits until all these jobs have ended. */
  ended(ids: readonly string[], seconds: number): Promise<Job[]>;
  /** Checks what must hold of an account whose jobs have all ended: each is charged once when it completed, and nothing else is, for a file that is stored. */
  checkLedger(account: string, jobs: readonly Job[]): Promise<void>;
  /** Ids of jobs whose files are kept. */
  objects(): string[];
  /** Ends what is left and removes the folder. */
  close(): Promise<void>;
}

const quiet = makeLog({ level: 'error', write: () => {}, now: () => 0 });

/** Makes the folder of a service that may reach what the tests serve on loopback, and starts nothing. */
export function makeService(settings: Readonly<Record<string, string>> = {}): Service {
  const { folder, remove } = aFolder();
  const data = join(folder, 'data');
  let running: RunningUp | undefined;
  const up = () => {
    if (!running) throw new Error('the service was not started');
    return running;
  };
  const processes = (command = /./) => ours(folder).filter((pid) => command.test(commandOf(pid)));
  const killAll = async () => {
    killEach(processes());
    await running?.ended;
  };
  const withStore: Service['withStore'] = (use) => openRecord(data, use);
  const ask: Service['ask'] = async (key, path, headers = {}) => {
    const answer = await fetch(up().url + path, { headers: { ...headers, 'x-api-key': key } });
    return { status: answer.status, headers: answer.headers, json: JSON.parse(await answer.text()) };
  };
  return {
    folder,
    data,
    up,
    processes,
    killAll,
    withStore,
    async start(env = {}) {
      running = await startUp({ TRAWL_DATA: data, TRAWL_EGRESS_ALLOW: '127.0.0.1:*', ...settings, ...env });
      return running;
    },
    stop() {
      up().process.kill('SIGTERM');
      return up().ended;
    },
    aCustomer: (wanted = {}) =>
      withStore(async (store) => {
        const { accountId } = await anAccount(store, { credits: 100_000, max_open: 10_000, ...wanted });
        return { account: accountId, key: await anotherKey(store, accountId) };
      }),
    ask,
    async submit(key, path) {
      const once = { 'idempotency-key': randomUUID() };
      const answered = async () => {
        const answer = await ask(key, path, once);
        return answer.status === 503 ? null : answer;
      };
      const answer = await until(answered, 20, `an answer to ${path}`);
      expect(answer?.status, path).to.equal(202);
      return answer?.json.job_id;
    },
    ended: (ids, seconds) => withStore((store) => whenEnded(store, ids, seconds)),
    checkLedger: (account, jobs) =>
      withStore((store) => checkLedger(store, account, jobs)).then(() => checkFiles(join(data, 'objects'), jobs)),
    objects: () => readdirSync(join(data, 'objects')).filter((name) => /^[0-9a-f-]{36}$/.test(name)),
    async close() {
      await until(() => killEach(processes()) === 0, 10, 'no process is left');
      remove();
    },
  };
}

async function openRecord<T>(data: string, use: (store: TestStore) => Promise<T>): Promise<T> {
  const url = await findRecord({ redisUrl: null, data });
  if (url === null) throw new Error('the service has no record now');
  const connection = await connect(url, { log: quiet, ...patient });
  try {
    return await use(storeOf(connection));
  } finally {
    await connection.close();
  }
}

async function whenEnded(store: TestStore, ids: readonly string[], seconds: number): Promise<Job[]> {
  const seen = new Map<string, Job>();
  const listOpen = () => ids.filter((id) => !isEnded(seen.get(id)?.status ?? 'QueuedJob'));
  const read = async () => {
    // A record that starts again is asked once more; a job that has ended is not.
    for (const job of await Promise.all(listOpen().map((id) => readJob(store, id).catch(() => null)))) {
      if (job) seen.set(job.id, job);
    }
    return listOpen().length === 0;
  };
  await until(read, seconds, `${ids.length} jobs to end`).catch((error: Error) => {
    const open = listOpen().map((id) => seen.get(id) ?? id);
    throw new Error(`${error.message}; open: ${JSON.stringify(open.slice(0, 3))}`);
  });
  return ids.flatMap((id) => seen.get(id) ?? []);
}

/** Checks what must hold of an account whose jobs have all ended: each is charged once when it completed, and nothing else is. */
export async function checkLedger(store: TestStore, account: string, jobs: readonly Job[]): Promise<void> {
  await until(async () => (await readSnapshot(store, account)).balances.held === 0, 90, 'no hold is left');
  expect((await verifyLedger(store, account)).problems).to.deep.equal([]);
  expect(await listOpen(store, account)).to.deep.equal([]);
  const completed = jobs.filter((job) => job.status === 'CompletedJob').map((job) => job.id);
  const charges = (await readLedger(store, account, 100_000)).filter((entry) => entry.kind === 'charge');
  expect(charges.map((entry) => entry.job).toSorted(), 'charges').to.deep.equal(completed.toSorted());
  expect(await lastingContradictions(store.connection), 'contradictions of the record').to.deep.equal([]);
}

/** Checks that each file that is kept has the bytes that the record names, and is the only one of its attempt. */
function checkFiles(objects: string, jobs: readonly Job[]): void {
  // Without this folder an S3 server has the files.
  if (!existsSync(objects)) return;
  for (const { id, delivered, removed_at } of jobs) {
    if (delivered === null || removed_at !== null) continue;
    const folder = join(objects, delivered.key);
    const stored = readdirSync(folder).map((name) => {
      const bytes = readFileSync(join(folder, name));
      return { name, bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
    });
    const { bytes, sha256 } = delivered;
    expect(stored, `the file of ${id}`).to.deep.equal([{ name: sha256, bytes, sha256 }]);
  }
}

/** Sends a signal to a process that may have ended. */
export function signal(pid: number, name: NodeJS.Signals): void {
  // 0 and less would be groups, the first of them our own.
  if (!(pid > 1)) throw new Error(`${pid} is no process of a service`);
  try {
    process.kill(pid, name);
  } catch {
    // The process has ended meanwhile.
  }
}

/** Kills processes, and returns how many they were: one of them may have begun another meanwhile. */
function killEach(pids: readonly number[]): number {
  for (const pid of pids) signal(pid, 'SIGKILL');
  return pids.length;
}

/** The command line of a process; empty when it has ended. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    // The process has ended meanwhile.
    return '';
  }
}

/** Processes of this system: those that work in its folder, or whose environment or command names it. */
function ours(folder: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => {
      try {
        const told = readFileSync(`/proc/${pid}/environ`, 'utf8') + commandOf(pid);
        return told.includes(folder) || readlinkSync(`/proc/${pid}/cwd`).startsWith(`${folder}/`);
      } catch {
        // The process has ended meanwhile, or belongs to another user.
        return false;
      }
    });
}
