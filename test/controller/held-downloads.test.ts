import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { StorageLane } from '../../src/controller/storage-lane.ts';
import { StorageProbe } from '../../src/controller/storage-probe.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { advanceWith, aRunner, emptyObjects } from '../support/advance.ts';
import {
  aDownload,
  admitted,
  anAccount,
  holder,
  lead,
  storeOf,
  type TestStore,
  takeJob,
  theJob,
} from '../support/record.ts';
import { aLog, startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

const queueMs = 24 * 3_600_000;

describe('while the object store takes no file', () => {
  let redis: TestRedis;
  let probe: StorageProbe;
  let store: TestStore;
  let runner: ReturnType<typeof aRunner>;
  let advance: (jobId: string) => Promise<number | null>;

  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());
  beforeEach(() => {
    store = storeOf(redis.connection);
    runner = aRunner({});
    const keep = async () => {
      throw new Error('it is full');
    };
    const { log } = aLog();
    probe = new StorageProbe({ objects: { ...emptyObjects, keep }, metrics: makeMetrics(), log });
    const lane = new StorageLane({ probe, log, again: () => {} });
    advance = advanceWith(store, runner, { lane, probe });
    probe.doubt();
  });
  afterEach(() => probe.close());

  async function taken(endpoint: 'video' | 'metadata'): Promise<string> {
    const id = await admitted(store, await anAccount(store, { credits: 1 }), { work: { ...aDownload, endpoint } });
    await lead(store, holder);
    while ((await takeJob(store, holder, 1_000_000)) !== id);
    return id;
  }

  const advanceHeld = (id: string) => advance(id).catch(() => undefined);

  it('D72: a download that is held ends as queue_timeout once it has waited for as long as a job may', async () => {
    const id = await taken('video');
    for (let n = 0; n < 3; n++) await advanceHeld(id);
    const stage = 'The storage of finished files takes no files';
    expect(await theJob(store, id)).to.include({ attempt: 1, interruptions: 0, status: 'QueuedJob', stage });
    store.advance(queueMs);
    await lead(store, holder);
    await advance(id);
    expect(await theJob(store, id)).to.include({ interruptions: 0, error_code: 'queue_timeout' });
    expect(runner.started).to.deep.equal([]);
  });

  it('a download that an earlier leader held is held by the next one, which begins it once a file is taken and counts only an interruption from then on', async () => {
    const id = await taken('video');
    await advanceHeld(id);
    let isFull = true;
    const keep = async () => {
      if (isFull) throw new Error('it is full');
    };
    const { log } = aLog();
    const next = new StorageProbe({ objects: { ...emptyObjects, keep }, metrics: makeMetrics(), log, firstMs: 1 });
    const lane = new StorageLane({ probe: next, log, again: () => {} });
    const advanceNext = advanceWith(store, runner, { lane, probe: next });
    await advanceNext(id).catch(() => undefined);
    expect([next.takesFiles(), runner.started]).to.deep.equal([false, []]);
    isFull = false;
    await until(() => next.takesFiles(), 5, 'the trial object to be written');
    await advanceNext(id);
    expect(runner.started).to.deep.equal([`${id}-1`]);
    expect(await theJob(store, id)).to.include({ attempt: 1, interruptions: 0, failures: 0, stage: null });
    await runner.stop(`${id}-1`);
    await advanceNext(id);
    next.close();
    expect(await theJob(store, id)).to.include({ interruptions: 1 });
    expect(next.takesFiles()).to.equal(true);
  });

  it('a download that is held is cancelled at once, and is not begun later', async () => {
    const id = await taken('video');
    await advanceHeld(id);
    expect((await cancelJob(store, await theJob(store, id))).done).to.equal(true);
    await advance(id);
    expect(await theJob(store, id)).to.include({ error_code: 'cancelled' });
    expect(runner.started).to.deep.equal([]);
  });

  it('metadata, which is not stored there, is asked for all the same', async () => {
    const id = await taken('metadata');
    await advance(id);
    expect(runner.started).to.deep.equal([`${id}-1`]);
  });
});
