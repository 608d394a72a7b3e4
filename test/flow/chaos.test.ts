import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeLog } from '../../src/base/log.ts';
import { isEnded, type Job } from '../../src/model/job.ts';
import { connect } from '../../src/store/connect.ts';
import { readJob } from '../../src/store/jobs.ts';
import { readLedger, readSnapshot, verifyLedger } from '../../src/store/ledger.ts';
import { recordFolder } from '../../src/store/open.ts';
import { listOpen } from '../../src/store/openings.ts';
import { anotherKey } from '../support/api.ts';
import { anAccount, storeOf, type TestStore } from '../support/record.ts';
import { aFolder } from '../support/redis.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';
import { type Running, startUp } from '../support/up.ts';

const rounds = process.env.ROUNDS === undefined ? 3 : 30;
const jobsOfRound = 20;
const partOf: Readonly<Record<string, RegExp>> = {
  'redis-server': /^redis-server/,
  egress: /main\.ts egress/,
  inspector: /main\.ts inspector/,
  worker: /main\.ts worker/,
};
const quiet = makeLog({ level: 'error', write: () => {}, now: () => 0 });

describe(`everything killed at random moments (${rounds} rounds)`, function () {
  this.timeout(60_000 + rounds * 90_000);
  let folder: string;
  let remove: () => void;
  let source: Source;
  let receiver: Receiver;
  let up: Running | null = null;

  before(async () => {
    ({ folder, remove } = aFolder());
    source = await startSource();
    receiver = await startReceiver();
  });
  after(async () => {
    for (const pid of ours(folder)) kill(pid);
    await until(() => ours(folder).length === 0, 10, 'no process is left');
    await source.stop();
    await receiver.stop();
    remove();
  });

  const data = () => join(folder, 'data');
  const env = () => ({
    TRAWL_DATA: data(),
    TRAWL_EGRESS_ALLOW: '127.0.0.1:*',
    TRAWL_WORKERS: '4',
    TRAWL_WEBHOOK_GAP_SECONDS: '1',
  });
  const withStore = async <T>(use: (store: TestStore) => Promise<T>): Promise<T> => {
    const connection = await connect(`unix://${join(recordFolder(data()), 'redis.sock')}`, { log: quiet });
    try {
      return await use(storeOf(connection));
    } finally {
      await connection.close();
    }
  };

  it('every job ends once, is charged once when it completed, and nothing is left behind', async () => {
    up = await startUp(env());
    const { account, key } = await withStore(async (store) => {
      const { account } = await anAccount(store, { credits: 100_000, max_open: 10_000 });
      return { account, key: await anotherKey(store, account) };
    });
    const ids: string[] = [];
    for (let round = 0; round < rounds; round++) {
      ids.push(...(await submit(up, key)));
      const inFlight = askMetadata(up, key);
      await pauseUntil(Math.random() * 2500);
      up = await strike(up, round);
      await inFlight;
    }
    const jobs = await withStore((store) => waitForAll(store, ids));
    await withStore((store) => judge(store, account, jobs));
    await until(
      () => ours(folder).filter((pid) => /main\.ts worker/.test(commandOf(pid))).length === 0,
      20,
      'no worker is left',
    );
    const folders = readdirSync(join(data(), 'work')).filter((name) => name.startsWith('job-'));
    expect(folders, 'folders of workers').to.deep.equal([]);
    const kept = jobs.filter((job) => job.delivered !== null).map((job) => job.id);
    expect(objectsOf(data()).toSorted(), 'objects').to.deep.equal(kept.toSorted());
    up.process.kill('SIGTERM');
    expect(await up.ended).to.equal(0);
    await until(() => ours(folder).length === 0, 10, 'no process is left');
    expect(readdirSync(join(data(), 'work')), 'folders after a clean stop').to.deep.equal([]);
  });

  /** Downloads of all kinds, some with a webhook. */
  const submit = async (at: Running, key: string): Promise<string[]> => {
    const found: string[] = [];
    for (let n = 0; n < jobsOfRound; n++) {
      const hook = n % 4 === 0 ? `&webhook_url=${encodeURIComponent(`${receiver.url}/${n}`)}` : '';
      const path = [
        `/v1/video/download?query=${source.url}/films/clip.mp4${hook}`,
        `/v1/audio/download?query=${source.url}/films/clip.mp4${hook}`,
        `/v1/media/metadata?is_async=true&query=${source.url}/films/clip.mp4`,
        `/v1/video/download?query=${source.url}/status/404${hook}`,
      ][n % 4]!;
      const answer = await fetch(at.url + path, { headers: { 'x-api-key': key } });
      expect(answer.status).to.equal(202);
      found.push(((await answer.json()) as { job_id: string }).job_id);
    }
    return found;
  };

  const askMetadata = (at: Running, key: string) =>
    Promise.allSettled(
      [1, 2, 3].map(() =>
        fetch(`${at.url}/v1/media/metadata?query=${source.url}/films/clip.mp4`, { headers: { 'x-api-key': key } }),
      ),
    );

  /** Kills everything, or one part; answers what runs afterwards. */
  const strike = async (at: Running, round: number): Promise<Running> => {
    const victim = ['everything', 'redis-server', 'egress', 'inspector', 'worker', 'parent'][round % 6]!;
    if (victim === 'everything') {
      for (const pid of ours(folder)) kill(pid);
      await at.ended;
      return startUp(env());
    }
    if (victim === 'parent') {
      at.process.kill('SIGKILL');
      await at.ended;
      return startUp(env());
    }
    for (const pid of ours(folder)) if (partOf[victim]?.test(commandOf(pid))) kill(pid);
    return at;
  };

  const waitForAll = async (store: TestStore, ids: readonly string[]): Promise<readonly Job[]> => {
    const seen = await until(
      async () => {
        const jobs = await Promise.all(ids.map((id) => readJob(store, id).catch(() => null)));
        return jobs.every((job) => job && isEnded(job.status)) ? (jobs as Job[]) : null;
      },
      180,
      'every job to end',
    );
    return seen ?? [];
  };

  const judge = async (store: TestStore, account: string, jobs: readonly Job[]) => {
    const ends = jobs.map((job) => `${job.status} ${job.error_code} ${job.args.query}`);
    expect(
      ends.filter((end) => !/^CompletedJob null|^NotFound deleted .*404/.test(end)),
      'ends',
    ).to.deep.equal([]);
    await until(async () => (await readSnapshot(store, account)).books.held === 0, 90, 'no hold is left');
    expect((await verifyLedger(store, account)).problems).to.deep.equal([]);
    expect(await listOpen(store, account)).to.deep.equal([]);
    const completed = jobs.filter((job) => job.status === 'CompletedJob').map((job) => job.id);
    const charges = (await readLedger(store, account, 100_000)).filter((entry) => entry.kind === 'charge');
    const charged = charges.map((entry) => entry.job).filter((id) => jobs.some((job) => job.id === id));
    expect(charged.toSorted(), 'charges of jobs').to.deep.equal(completed.toSorted());
    const hooked = jobs.filter((job) => job.webhook_url !== null).map((job) => job.id);
    await until(() => hooked.every((id) => receiver.of(id) > 0), 60, 'every webhook');
    for (const id of hooked) expect(receiver.of(id), `webhooks of ${id}`).to.be.within(1, 3);
  };
});

interface Receiver {
  readonly url: string;
  of(job: string): number;
  stop(): Promise<void>;
}

async function startReceiver(): Promise<Receiver> {
  const seen = new Map<string, number>();
  const server: Server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const { id } = JSON.parse(Buffer.concat(chunks).toString()) as { id: string };
    seen.set(id, (seen.get(id) ?? 0) + 1);
    res.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    of: (job) => seen.get(job) ?? 0,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Processes of this system: those whose environment or command names its folder. */
function ours(folder: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => {
      try {
        return (
          readFileSync(`/proc/${pid}/environ`, 'utf8').includes(join(folder, 'data')) || commandOf(pid).includes(folder)
        );
      } catch {
        // It has ended meanwhile, or belongs to another user.
        return false;
      }
    });
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

function objectsOf(data: string): string[] {
  return readdirSync(join(data, 'objects')).filter((name) => /^[0-9a-f-]{36}$/.test(name));
}

/** Random moments are the point of this test: nothing is waited for. */
function pauseUntil(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
