import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import type { Job } from '../../src/model/job.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { readLedger } from '../../src/store/log/read-ledger.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { makeRandom } from '../support/random.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { seed } from '../support/seed.ts';
import { type Customer, commandOf, makeService, type Service, signal } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';

const rounds = process.env.ROUNDS === undefined ? 5 : 30;
const random = makeRandom(seed);
const jobsOfRound = 20;
/** One a round, and again. */
const victims: readonly (readonly [string, RegExp])[] = [
  ['everything', /./],
  ['redis-server', /^redis-server/],
  ['egress', /main\.ts egress/],
  ['inspector', /main\.ts inspector/],
  ['the workers', /main\.ts worker/],
  ['the parent', /main\.ts up/],
];
const [video, audio, metadata] = ['/v1/video/download?', '/v1/audio/download?', '/v1/media/metadata?is_async=true&'];
const [film, nothing] = ['/films/clip.mp4', '/status/404'];
/** The request of the nth job of a round, with or without a webhook. */
const kinds = [
  [video, film, true],
  [metadata, film, false],
  [metadata, nothing, false],
  [audio, film, true],
  [metadata, film, false],
  [metadata, nothing, false],
  [video, nothing, true],
  [metadata, film, false],
  [metadata, nothing, false],
  [metadata, nothing, false],
] as const;

describe(`one part or everything killed at a random moment (${rounds} rounds)`, function () {
  this.timeout(300_000 + rounds * 90_000);
  const service: Service = makeService({
    TRAWL_WORKERS: '4',
    TRAWL_WEBHOOK_GAP_SECONDS: '1',
    TRAWL_INSPECT_SECONDS: '15',
  });
  let films: Source;
  let receiver: Receiver;

  before(async () => {
    films = await startSource();
    receiver = await startReceiver();
  });
  after(async () => {
    await service.close();
    await films.stop();
    await receiver.stop();
  });

  it('D74 D93: every job ends once, is charged once when it completed, and nothing is left behind', async () => {
    const outside = readdirSync(tmpdir());
    await service.start();
    const customer = await service.aCustomer();
    const caller = await service.aCustomer();
    const ids: string[] = [];
    const calls: Call[] = [];
    for (let round = 0; round < rounds; round++) {
      ids.push(...(await submit(customer)));
      const inFlight = askMetadata(caller);
      await pause(random() * 2_500);
      await strike(round);
      calls.push(...(await inFlight));
    }
    const jobs = await service.ended(ids, 60 + rounds * 30);
    const ends = jobs.map(({ status, error_code, args }) => `${status} ${error_code} ${args.query}`);
    const other = ends.filter((end) => !/^CompletedJob null .*clip|^NotFound deleted .*404/.test(end));
    expect(other, 'ends').to.deep.equal([]);
    await service.checkLedger(customer.account, jobs);
    await checkCalls(caller, calls);
    await checkWebhooks(customer, jobs);
    await checkFiles(jobs);
    expect(await service.stop()).to.equal(0);
    const left = () => `no process is left, but there is ${service.processes().map(commandOf).join('\n')}`;
    await until(() => service.processes().length === 0, 10, left);
    expect(readdirSync(join(service.data, 'work')), 'folders after a clean stop').to.deep.equal([]);
    expect(readdirSync(tmpdir()), 'temporary files').to.deep.equal(outside);
  });

  /** Downloads and metadata, some with a webhook. */
  const submit = ({ key }: Customer): Promise<string[]> => {
    const asked = Array.from({ length: jobsOfRound }, (_, n) => {
      const [path, source, hasWebhook] = kinds[n % kinds.length]!;
      const webhook = hasWebhook ? `&webhook_url=${encodeURIComponent(`${receiver.url}/${n}`)}` : '';
      return service.submit(key, `${path}query=${films.url}${source}${webhook}`);
    });
    return Promise.all(asked);
  };

  const askMetadata = ({ key }: Customer): Promise<Call[]> =>
    Promise.all(
      [1, 2, 3].map(() =>
        service.ask(key, `/v1/media/metadata?query=${films.url}${film}`).then(
          ({ status }): Call => (status === 200 ? 'answered' : 'refused'),
          (): Call => 'cut off',
        ),
      ),
    );

  const strike = async (round: number): Promise<void> => {
    const [name, command] = victims[round % victims.length]!;
    const { ended } = service.up();
    const struck = service.processes(command);
    if (name !== 'the workers') expect(struck, name).not.to.deep.equal([]);
    for (const pid of struck) signal(pid, 'SIGKILL');
    if (name !== 'everything' && name !== 'the parent') return;
    await ended;
    await service.start();
  };

  /** An answered call is paid once; a call that was cut off may be. */
  const checkCalls = async ({ account }: Customer, calls: readonly Call[]) => {
    expect(calls.length).to.equal(3 * rounds);
    const count = (kind: Call) => calls.filter((call) => call === kind).length;
    const charged = await service.withStore(async (store) => {
      const books = async () => (await readSnapshot(store, account)).balances;
      await until(async () => (await books()).held === 0, 90, 'no hold of a call is left');
      expect((await verifyLedger(store, account)).problems).to.deep.equal([]);
      return (await books()).credits_consumed;
    });
    expect(charged, `charges of calls: ${calls}`).to.be.within(count('answered'), count('answered') + count('cut off'));
  };

  /** Each is told one to three times with the id of its job, and never before the job was charged. */
  const checkWebhooks = async ({ account }: Customer, jobs: readonly Job[]) => {
    const hooked = jobs.filter((job) => job.webhook_url !== null);
    expect(hooked.length).to.equal((rounds * jobsOfRound * 3) / kinds.length);
    await until(() => hooked.every(({ id }) => receiver.of(id).length > 0), 60, 'every webhook');
    const entries = await service.withStore((store) => readLedger(store, account, 100_000));
    const chargedAt = new Map(entries.map(({ job, at }) => [job, at]));
    for (const { id, status } of hooked) {
      const told = receiver.of(id);
      expect(told.length, `webhooks of ${id}`).to.be.within(1, 3);
      for (const { body, at } of told) {
        expect(body.status).to.equal(status === 'CompletedJob' ? status : 'Error');
        expect(at, `${id} is told after its charge`).to.be.at.least(chargedAt.get(id) ?? 0);
      }
    }
    expect(receiver.posted.filter(({ body }) => !hooked.some(({ id }) => id === body.id))).to.deep.equal([]);
  };

  const checkFiles = async (jobs: readonly Job[]) => {
    await until(() => service.processes(/main\.ts worker/).length === 0, 20, 'no worker is left');
    const folders = readdirSync(join(service.data, 'work')).filter((name) => name.startsWith('job-'));
    expect(folders, 'folders of workers').to.deep.equal([]);
    expect(readdirSync(join(service.data, 'objects', '.uploads')), 'uploads').to.deep.equal([]);
    const kept = jobs.filter((job) => job.delivered !== null).map((job) => job.id);
    expect(service.objects().toSorted(), 'objects').to.deep.equal(kept.toSorted());
  };
});

/** The end of a synchronous call as its caller saw it. */
type Call = 'answered' | 'refused' | 'cut off';
