import { expect } from 'chai';
import { makeLog } from '../../src/base/log.ts';
import { type Metrics, makeMetrics, renderMetrics } from '../../src/base/metrics.ts';
import { startGauges } from '../../src/controller/gauges.ts';
import { noteBackupBegun, noteBackupTaken } from '../../src/store/backup/backup-notes.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { noteProgress } from '../../src/store/jobs/note-progress.ts';
import { retryJob } from '../../src/store/jobs/retry-job.ts';
import { keys } from '../../src/store/keys.ts';
import { admitted, anAccount, aRunningJob, holder, storeOf, type TestStore, theJob } from '../support/record.ts';
import { aLog, startTestRedis, type TestRedis } from '../support/redis.ts';

describe('gauges of the record', () => {
  let redis: TestRedis;
  let store: TestStore;
  before(async () => {
    redis = await startTestRedis();
    store = storeOf(redis.connection);
  });
  after(() => redis.stop());

  const log = makeLog({ level: 'error', write: () => {}, now: Date.now });
  const begin = (isLeading: () => boolean, wanted: Partial<Parameters<typeof startGauges>[0]> = {}) => {
    const metrics = makeMetrics();
    const usual = { store, metrics, isLeading, oldestUnsettled: () => null, backupsScheduled: false, log };
    return { metrics, gauges: startGauges({ ...usual, ...wanted }) };
  };
  /** Every series but those of Node. */
  const shown = async (metrics: Metrics) =>
    (await renderMetrics(metrics)).split('\n').filter((line) => /^trawl_(?!nodejs_|process_)/.test(line));

  it('show the holds and the queue at the time of the scrape', async () => {
    const { metrics, gauges } = begin(() => true);
    const caller = await anAccount(store, { credits: 2 });
    const id = await admitted(store, caller);
    expect(await renderMetrics(metrics))
      .to.match(/^trawl_holds_open 1$/m)
      .and.match(/^trawl_jobs_open\{state="queued"\} 1$/m);
    await cancelJob(store, await theJob(store, id));
    expect(await renderMetrics(metrics))
      .to.match(/^trawl_holds_open 0$/m)
      .and.match(/^trawl_jobs_open\{state="queued"\} 0$/m);
    await gauges.close();
    expect(metrics.refreshers.size).to.equal(0);
  });

  it('show a job that waits for another attempt as open, like its hold', async () => {
    const { metrics, gauges } = begin(() => true);
    const caller = await anAccount(store, { credits: 1 });
    const job = await aRunningJob(store, caller);
    const why = { counts: 'failure', code: 'source_error', notBefore: store.clock.now() + 60_000 } as const;
    await retryJob(store, holder, job, why);
    const open = (await shown(metrics)).filter((line) => /^trawl_(jobs|holds)_open/.test(line));
    expect(open.sort()).to.deep.equal([
      'trawl_holds_open 1',
      'trawl_jobs_open{state="delayed"} 1',
      'trawl_jobs_open{state="queued"} 0',
      'trawl_jobs_open{state="running"} 0',
    ]);
    await cancelJob(store, await theJob(store, job.id));
    await gauges.close();
  });

  it('show a job whose worker was ordered and never ran as waiting, until it runs', async () => {
    const { metrics, gauges } = begin(() => true);
    const caller = await anAccount(store, { credits: 1 });
    const job = await aRunningJob(store, caller);
    store.advance(1_200_000);
    expect(await renderMetrics(metrics)).to.match(/^trawl_oldest_queued_seconds 12\d\d(\.\d+)?$/m);
    const begun = { progress: 0, stage: '', speed_bytes: null, eta_seconds: null, running: true };
    await noteProgress(store, job, job.attempt, begun);
    expect(await shown(metrics)).to.include('trawl_oldest_queued_seconds 0');
    await cancelJob(store, await theJob(store, job.id));
    await gauges.close();
  });

  it('show the age of the oldest unsettled job, and 0 for none', async () => {
    let since: number | null = store.clock.now() - 90_000;
    const { metrics, gauges } = begin(() => true, { oldestUnsettled: () => since });
    expect(await renderMetrics(metrics)).to.match(/^trawl_oldest_unsettled_seconds 9\d(\.\d+)?$/m);
    since = null;
    expect(await renderMetrics(metrics)).to.match(/^trawl_oldest_unsettled_seconds 0$/m);
    await gauges.close();
  });

  it('show an age of backups that are scheduled and never begin, and none where nothing is scheduled', async () => {
    const { metrics: others, gauges: otherGauges } = begin(() => true);
    for (let n = 0; n < 2; n++) expect(await shown(others)).to.include('trawl_backup_age_seconds 0');
    const { metrics, gauges } = begin(() => true, { backupsScheduled: true });
    await renderMetrics(metrics);
    const advanced = { ...store, clock: { now: () => store.clock.now() + 27 * 3_600_000, offset: () => 0 } };
    const { metrics: next, gauges: nextGauges } = begin(() => true, { backupsScheduled: true, store: advanced });
    expect(await renderMetrics(next)).to.match(/^trawl_backup_age_seconds 972\d\d(\.\d+)?$/m);
    // A schedule that was given up is missed by no alert, and one that begins again later has the age of its beginning.
    const { metrics: without, gauges: withoutGauges } = begin(() => true, { store: advanced });
    expect(await shown(without)).to.include('trawl_backup_age_seconds 0');
    for (let n = 0; n < 2; n++) expect(await renderMetrics(next)).to.match(/^trawl_backup_age_seconds [0-9](\.\d+)?$/m);
    await Promise.all([gauges, otherGauges, nextGauges, withoutGauges].map((one) => one.close()));
  });

  it('show an age of backups that were begun and taken while the clock was ahead, which grows from its correction on', async () => {
    const ahead = { ...store, clock: { now: () => store.clock.now() + 90 * 24 * 3_600_000, offset: () => 0 } };
    const { metrics, gauges } = begin(() => true);
    await noteBackupBegun(ahead);
    await noteBackupTaken(store, ahead.clock.now());
    expect(await shown(metrics)).to.include('trawl_backup_age_seconds 0');
    store.advance(27 * 3_600_000);
    expect(await renderMetrics(metrics)).to.match(/^trawl_backup_age_seconds 972\d\d(\.\d+)?$/m);
    await redis.connection.send(['HDEL', keys.backup, 'taken_at']);
    expect(await renderMetrics(metrics)).to.match(/^trawl_backup_age_seconds 972\d\d(\.\d+)?$/m);
    await gauges.close();
  });

  it('gauges that cannot be read are a warning and a count, never silence', async () => {
    const { lines, log } = aLog();
    const broken: TestStore = {
      ...store,
      connection: { ...redis.connection, eval: () => Promise.reject(new Error('no')) },
    };
    const { metrics, gauges } = begin(() => true, { store: broken, log });
    expect(await renderMetrics(metrics)).to.match(/^trawl_upkeep_errors_total\{task="gauges"\} 1$/m);
    expect(lines.filter((line) => line.includes('"warn"') && line.includes('gauges could not be read'))).to.have.length(
      1,
    );
    await gauges.close();
  });

  it('are absent where another controller leads', async () => {
    const { metrics, gauges } = begin(() => false);
    expect(await renderMetrics(metrics)).not.to.match(/^trawl_holds_open /m);
    await gauges.close();
  });

  it('are absent in a controller that has lost the lead, as in one that never led', async () => {
    let leads = true;
    const { metrics, gauges } = begin(() => leads);
    const { metrics: others, gauges: otherGauges } = begin(() => false);
    metrics.stray_objects.set(2);
    expect(await shown(metrics))
      .to.include('trawl_holds_open 0')
      .and.include('trawl_stray_objects 2');
    leads = false;
    expect(await shown(metrics)).to.deep.equal(await shown(others));
    leads = true;
    expect(await shown(metrics)).to.include('trawl_holds_open 0');
    await Promise.all([gauges.close(), otherGauges.close()]);
  });

  it('are absent when the lead is lost while the record is read', async () => {
    let leads = true;
    const losing: TestStore = {
      ...store,
      connection: {
        ...redis.connection,
        async eval(...asked) {
          leads = false;
          return redis.connection.eval(...asked);
        },
      },
    };
    const { metrics, gauges } = begin(() => leads, { store: losing });
    expect(await shown(metrics)).to.deep.equal(await shown(makeMetrics()));
    expect(leads).to.equal(false);
    await gauges.close();
  });
});
