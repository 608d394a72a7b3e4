import { randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { StageTime } from '../../src/model/attempt-stages.ts';
import { type Metadata, readMetadata } from '../../src/model/metadata.ts';
import { type Cursor, listJobs } from '../../src/store/jobs/list-jobs.ts';
import { noteProgress } from '../../src/store/jobs/note-progress.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys, shortId } from '../../src/store/keys.ts';
import { makeRandom } from '../support/random.ts';
import {
  aDownload,
  anAccount,
  aRunningJob,
  completed,
  failed,
  holder,
  lead,
  scoreOfJob,
  storeOf,
} from '../support/record.ts';
import { startTestRedis } from '../support/redis.ts';
import { seed } from '../support/seed.ts';

const maxBytes = 1_600;
const maxWorstBytes = 20_000;
const random = makeRandom(seed);

/** About 1,000 characters, of which no two descriptions have many in common. */
function aDescription(): string {
  const words = `In this film we walk through the old harbour and talk to people who still repair boats there by hand. First the
planks are cut, steamed and bent; then a boat has its first day at sea. Camera and sound: the two of us. Music: recorded live
in the shed on the last evening, with a borrowed accordion. Subscribe and leave a comment with the name of your own harbour.`;
  const list = words.split(/\s+/);
  let text = '';
  while (text.length < 1_000) {
    const isOwn = random() < 0.1;
    text += isOwn ? randomBytes(4).toString('base64url') : list[Math.floor(random() * list.length)];
    text += random() < 0.1 ? '\n' : ' ';
  }
  return text.slice(0, 1_000);
}

function usualMetadata(): Metadata {
  const [id, channel] = [randomBytes(8).toString('base64url'), randomBytes(16).toString('base64url')];
  const url = `https://www.youtube.com/watch?v=${id}`;
  return readMetadata({
    ...{ id, ext: 'mp4', title: `How we built a boat in the ${id}`, width: 1920, height: 1080, channel: 'The harbour' },
    ...{ channel_url: `https://www.youtube.com/channel/UC${channel}`, is_live: false, was_live: false },
    ...{ live_status: 'not_live', duration: 1_234, extractor: 'youtube', like_count: 12_345, view_count: 1_234_567 },
    ...{ thumbnail: `https://i.ytimg.com/vi/${id}/maxresdefault.jpg`, description: aDescription() },
    ...{ upload_date: 20260102, webpage_url: url, original_url: url },
  }) as Metadata;
}

/** Stages of a video of which nothing is converted. */
function usualStages(): StageTime[] {
  const ms = (most: number) => Math.floor(random() * most);
  return [
    { stage: 'inspect', ms: ms(5_000) },
    { stage: 'fetch', ms: ms(60_000) },
    { stage: 'convert', ms: ms(2_000) },
    { stage: 'prove', ms: ms(2_000) },
    { stage: 'upload', ms: ms(5_000) },
  ];
}

/** Random characters of every plane: no text is harder to deflate. */
function noise(length: number): string {
  const one = () => String.fromCodePoint(0x10000 + Math.floor(random() * 0xf0000));
  return Array.from({ length: length / 2 }, one).join('');
}

describe('the record of jobs that have ended', () => {
  let redis: Awaited<ReturnType<typeof startTestRedis>>;
  beforeEach(async () => {
    redis = await startTestRedis();
  });
  afterEach(() => redis.stop());

  const aStore = async () => {
    const store = storeOf(redis.connection);
    await lead(store, holder);
    return store;
  };
  /** The bytes of all keys, without what Redis has in reserve. */
  const bytesOfAll = async () => {
    const names = (await redis.connection.send(['KEYS', '*'])) as string[];
    const sizes = await Promise.all(
      names.map((name) => redis.connection.send(['MEMORY', 'USAGE', name, 'SAMPLES', '0'])),
    );
    return sizes.reduce<number>((sum, size) => sum + Number(size), 0);
  };

  it('takes at most 1.6 KB for a usual job an hour after its end, with ledger, lines and indexes', async () => {
    const store = await aStore();
    const caller = await anAccount(store, { credits: 1_000 });
    const endSome = async (count: number) => {
      for (let n = 0; n < count; n++) {
        const metadata = usualMetadata();
        const args = { query: metadata.webpage_url, is_async: true, video_quality: 'best', video_format: 'mp4' };
        const job = await aRunningJob(store, caller, { work: { ...aDownload, args } });
        await noteProgress(store, job, 1, {
          progress: 10,
          stage: 'fetch video',
          ...{ speed_bytes: 1_000_000, eta_seconds: 9, stages: usualStages() },
        });
        const sha256 = randomBytes(32).toString('hex');
        const delivered = { ...completed.delivered!, key: `${job.id}/1/media.mp4`, bytes: 12_345_678, sha256 };
        await settleJob(store, holder, job, { ...completed, metadata, delivered });
      }
    };
    // Indexes of more than 128 entries have another form.
    await endSome(130);
    const before = await bytesOfAll();
    await endSome(150);
    store.advance(3_600_000);
    expect(((await bytesOfAll()) - before) / 150).to.be.within(500, maxBytes);
  });

  it('has no counters of a key until one of its calls is 5 minutes old', async () => {
    const store = await aStore();
    const caller = await anAccount(store, { credits: 2, perMinute: 100 });
    const counters = [keys.quota(caller.hash), keys.rate(caller.accountId)];
    const exist = () => store.connection.send(['EXISTS', ...counters]);
    await settleJob(store, holder, await aRunningJob(store, caller), completed);
    expect(await exist()).to.equal(0);
    store.advance(300_000);
    await aRunningJob(store, caller);
    expect(await exist()).to.equal(2);
  });

  it('takes at most 20 KB for the page with the most text', async () => {
    const store = await aStore();
    const caller = await anAccount(store, { credits: 2 });
    const before = await bytesOfAll();
    const long = noise(10_000);
    const names = ['id', 'ext', 'title', 'channel', 'extractor', 'description'];
    const metadata = readMetadata({
      ...Object.fromEntries(names.map((name) => [name, long])),
      ...Object.fromEntries(
        ['channel_url', 'thumbnail', 'webpage_url'].map((n) => [n, `https://a.test/${noise(1_000)}`]),
      ),
    });
    const query = `https://a.test/${randomBytes(3_000).toString('base64url')}`;
    const job = await aRunningJob(store, caller, { work: { ...aDownload, args: { query } } });
    await settleJob(store, holder, job, { ...completed, metadata });
    expect((await bytesOfAll()) - before).to.be.within(5_000, maxWorstBytes);
  });

  for (const [status, others] of [
    ['NotFound', 'Error'],
    ['Running', 'QueuedJob'],
  ] as const) {
    it(`lists the only one of 2,000 jobs that is ${status} with at most 60 commands`, async () => {
      const store = await aStore();
      const caller = await anAccount(store, { credits: 2 });
      const job = await aRunningJob(store, caller);
      if (status === 'Running') {
        await noteProgress(store, job, 1, { progress: 1, stage: 'inspect', speed_bytes: null, eta_seconds: null });
      } else {
        await settleJob(store, holder, job, { ...failed, status });
      }
      const index = Array.from({ length: 1_998 }, (_, n) => [
        String(scoreOfJob(job.created_at + 1 + n, others)),
        shortId(randomUUID()),
      ]);
      await store.connection.send(['ZADD', keys.jobs(caller.accountId), ...index.flat()]);
      await store.connection.send(['CONFIG', 'RESETSTAT']);
      const listed = await listJobs(store, caller.accountId, { status, limit: 20, after: null });
      const told = String(await store.connection.send(['INFO', 'commandstats']));
      const calls = [...told.matchAll(/^cmdstat_(?!config|info|ping|time)\S+:calls=(\d+)/gm)].map(([, count]) =>
        Number(count),
      );
      expect(listed.jobs.map(({ id }) => id)).to.deep.equal([job.id]);
      expect(calls.reduce((sum, count) => sum + count, 0)).to.be.within(1, 60);
    });
  }

  it('lists jobs of one millisecond once each, over pages of any size', async () => {
    const store = await aStore();
    const caller = await anAccount(store, { credits: 50 });
    const ids: string[] = [];
    for (let n = 0; n < 9; n++) {
      const job = await aRunningJob(store, caller);
      ids.push(job.id);
      const ending = n % 2 === 0 ? completed : failed;
      if (n % 3 > 0) await settleJob(store, holder, job, ending);
      // All were created at the same time.
      const score = scoreOfJob(1_000, n % 3 === 0 ? 'QueuedJob' : ending.status);
      await store.connection.send(['ZADD', keys.jobs(caller.accountId), String(score), shortId(job.id)]);
    }
    for (const limit of [1, 2, 4, 9, 10]) {
      const seen: string[] = [];
      let after: Cursor | null = null;
      do {
        const page: Awaited<ReturnType<typeof listJobs>> = await listJobs(store, caller.accountId, {
          status: undefined,
          limit,
          after,
        });
        seen.push(...page.jobs.map(({ id }) => id));
        after = page.next;
      } while (after !== null);
      expect(seen).to.deep.equal(ids.toSorted().reverse());
    }
  });
});
