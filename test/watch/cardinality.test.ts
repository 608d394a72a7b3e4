import { expect } from 'chai';
import { readConfig } from '../../src/base/config.ts';
import { makeMetrics, renderMetrics } from '../../src/base/metrics.ts';
import { makeShutdown } from '../../src/base/shutdown.ts';
import { countSettledJob } from '../../src/controller/job-metrics.ts';
import { endOf } from '../../src/model/next.ts';
import type { Outcome } from '../../src/model/outcome.ts';
import { openRecord } from '../../src/roles/open-record.ts';
import { advanceWith, aRunner } from '../support/advance.ts';
import { someDelivered, someMetadata } from '../support/jobs.ts';
import { aDownload, anAccount, aRunningJob, storeOf } from '../support/record.ts';
import { aFolder, aLog, startTestServer } from '../support/redis.ts';

const isLong = process.env.ROUNDS !== undefined;
/** The jobs that are admitted, run and settled in a real record; the pure counts are always of 10,000. */
const count = isLong ? 10_000 : 300;
const first = 100;
const hosts = 500;

/** Names and labels of all series, without those of Node itself, which come with time. */
async function seriesOf(metrics: Parameters<typeof renderMetrics>[0]): Promise<string[]> {
  const lines = (await renderMetrics(metrics)).split('\n').filter((line) => /^trawl_(?!nodejs|process)/.test(line));
  return lines.map((line) => line.slice(0, line.lastIndexOf(' '))).sort();
}

const sourceOf = (n: number) => `https://media-${n % hosts}.example/films/${n}`;

describe('the number of series', function () {
  this.timeout(isLong ? 900_000 : 300_000);

  it(`is the same after ${count} jobs of ${count / 10} accounts as after ${first}, in a real record`, async () => {
    const [server, stop, metrics, { folder, remove }] = [
      await startTestServer(),
      makeShutdown(),
      makeMetrics(),
      aFolder(),
    ];
    try {
      const config = readConfig({ TRAWL_DATA: folder, TRAWL_REDIS_URL: server.url });
      const { connection } = await openRecord({ config, log: aLog().log, metrics, stop }, () => undefined);
      const store = storeOf(connection);
      const see = async () => ({ bytes: someDelivered(1).bytes, checksum: someDelivered(1).sha256 });
      const objects = { finish: async () => false, see, remove: async () => {} };
      const endJobs = async (from: number, to: number) => {
        let caller = await anAccount(store, { credits: 20 });
        for (let n = from; n < to; n++) {
          if (n % 10 === 0) caller = await anAccount(store, { credits: 20 });
          const work = { ...aDownload, args: { ...aDownload.args, query: sourceOf(n) } };
          const job = await aRunningJob(store, caller, { work });
          const runner = aRunner({ [`${job.id}-1`]: outcomeOf(n, job.id) });
          const advance = advanceWith(store, runner, { metrics, objects });
          for (let step = 0; step < 2; step++) await advance(job.id);
        }
      };
      await endJobs(0, first);
      const few = await seriesOf(metrics);
      expect(few).to.include('trawl_jobs_total{endpoint="video",outcome="completed",code="",blame=""}');
      await endJobs(first, count);
      expect(await seriesOf(metrics)).to.deep.equal(few);
    } finally {
      await stop.run();
      await server.stop();
      remove();
    }
  });

  it('is the same after 10,000 ends of jobs of 1,000 accounts and 500 hosts as after 100', async () => {
    const server = await startTestServer();
    const metrics = makeMetrics();
    try {
      const store = storeOf(server.connection);
      const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
      const end = (n: number) => {
        const one = { ...job, id: `job-${n}`, account: `account-${n % 1_000}`, args: { query: sourceOf(n) } };
        const code = (['private', 'source_error', 'timeout'] as const)[n % 3]!;
        countSettledJob(metrics, one, { end: endOf(code), balance: 'credits', now: n });
      };
      for (let n = 0; n < 100; n++) end(n);
      const few = await seriesOf(metrics);
      for (let n = 100; n < 10_000; n++) end(n);
      expect(await seriesOf(metrics)).to.deep.equal(few);
    } finally {
      await server.stop();
    }
  });
});

/** Of three jobs one completes, one fails for its caller and one for its source. */
function outcomeOf(n: number, jobId: string): Outcome {
  if (n % 3 === 1) return { is: 'failed', code: 'private' };
  if (n % 3 === 2) return { is: 'failed', code: 'deleted' };
  return { is: 'done', metadata: someMetadata, delivered: { ...someDelivered(1), key: `${jobId}/1/media.mp4` } };
}
