import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { readConfig } from '../../src/base/config.ts';
import { type Metrics, makeMetrics, renderMetrics } from '../../src/base/metrics.ts';
import { makeShutdown } from '../../src/base/shutdown.ts';
import { startGauges } from '../../src/controller/gauges.ts';
import { countSettledJob } from '../../src/controller/job-metrics.ts';
import { endOf } from '../../src/model/next.ts';
import { openKubernetesWorkers } from '../../src/roles/kubernetes-workers.ts';
import { openRecord } from '../../src/roles/open-record.ts';
import { showYtDlpVersion } from '../../src/roles/yt-dlp-version.ts';
import { setRunnerGauges } from '../../src/runners/kubernetes/runner-gauges.ts';
import { countAuthFailure } from '../../src/store/access/count-auth-failure.ts';
import { beginDrain } from '../../src/store/access/drain.ts';
import { noteBackupBegun } from '../../src/store/backup/backup-notes.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { rollPeriod } from '../../src/store/money/roll-period.ts';
import { watchClock } from '../../src/store/redis/clock-watch.ts';
import { freezeProcess } from '../support/freeze-process.ts';
import { aDownload, admitted, anAccount, aRunningJob, completed, holder, storeOf } from '../support/record.ts';
import { aFolder, aLog, startTestPair, startTestRedis, startTestServer } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { programs } from '../support/worker.ts';

/** The value of a series; `undefined` while it is not shown. */
async function readMetric(metrics: Metrics, series: string): Promise<number | undefined> {
  const line = (await renderMetrics(metrics)).split('\n').find((one) => one.startsWith(`trawl_${series} `));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
}

describe('metrics of the record', () => {
  it('redis_seconds, redis_replicas, redis_replica_seconds, redis_unreplicated_total and redis_ready follow Redis', async () => {
    const [pair, stop, metrics, { folder, remove }] = [await startTestPair(), makeShutdown(), makeMetrics(), aFolder()];
    try {
      const config = readConfig({ TRAWL_DATA: folder, TRAWL_REDIS_URL: pair.url });
      const store = await openRecord({ config, log: aLog().log, metrics, stop }, () => undefined);
      await anAccount(store, { credits: 1 });
      expect(await readMetric(metrics, 'redis_replicas')).to.equal(1);
      expect(await readMetric(metrics, 'redis_seconds_count{script="create-account"}')).to.equal(1);
      expect(await readMetric(metrics, 'redis_replica_seconds_count')).to.be.greaterThan(0);
      expect(await readMetric(metrics, 'redis_unreplicated_total')).to.equal(0);
      expect(await readMetric(metrics, 'redis_ready')).to.equal(1);
      const thaw = await freezeProcess(pair.replica.process.pid);
      await anAccount(store, { credits: 1 }).catch(() => undefined);
      thaw();
      expect(await readMetric(metrics, 'redis_unreplicated_total')).to.be.greaterThan(0);
      await pair.master.process.stop();
      await until(async () => (await readMetric(metrics, 'redis_ready')) === 0, 20, 'redis is away');
    } finally {
      await stop.run();
      await pair.stop();
      remove();
    }
  });

  it('lapses_total counts the quota that a period leaves', async () => {
    const [redis, stop, metrics, { folder, remove }] = [
      await startTestServer(),
      makeShutdown(),
      makeMetrics(),
      aFolder(),
    ];
    try {
      const config = readConfig({ TRAWL_DATA: folder, TRAWL_REDIS_URL: redis.url });
      const store = await openRecord({ config, log: aLog().log, metrics, stop }, () => undefined);
      const { accountId } = await anAccount(store, { quota: 7 });
      const laterMs = 40 * 86_400_000;
      const later = { ...store, clock: { now: () => store.clock.now() + laterMs, offset: () => laterMs } };
      expect(await rollPeriod(later, accountId)).to.equal(true);
      expect(await rollPeriod(later, accountId)).to.equal(false);
      expect(await readMetric(metrics, 'lapses_total{balance="subscription"}')).to.equal(7);
    } finally {
      await stop.run();
      await redis.stop();
      remove();
    }
  });

  it('clock_steady and clock_difference_seconds follow the clock of Redis', async () => {
    const metrics = makeMetrics();
    const clock = { isSteady: () => false, machineAheadMs: () => -75_000, now: Date.now, offset: () => 0 };
    const watch = watchClock(clock as unknown as Parameters<typeof watchClock>[0], metrics, aLog().log);
    watch.close();
    expect(await readMetric(metrics, 'clock_steady')).to.equal(0);
    expect(await readMetric(metrics, 'clock_difference_seconds')).to.equal(-75);
  });

  it('webhooks_due, oldest_webhook_seconds, oldest_queued_seconds, blocked_ips, drain_seconds and backup_age_seconds follow the record', async () => {
    const redis = await startTestRedis();
    const [store, metrics] = [storeOf(redis.connection), makeMetrics()];
    const { log } = aLog();
    const leading = { isLeading: () => true, oldestUnsettled: () => null };
    const gauges = startGauges({ store, metrics, ...leading, backupsScheduled: false, log });
    try {
      for (const name of [
        'webhooks_due',
        'oldest_webhook_seconds',
        'oldest_queued_seconds',
        'blocked_ips',
        'drain_seconds',
      ])
        expect(await readMetric(metrics, name), name).to.equal(0);
      const caller = await anAccount(store, { credits: 2 });
      const webhook = { url: 'http://good.test/', receiver: 'good.test', authorization: '' };
      await settleJob(store, holder, await aRunningJob(store, caller, { work: { ...aDownload, webhook } }), completed);
      await admitted(store, caller);
      await countAuthFailure(store, '192.0.2.1', { maxFailures: 1, windowMs: 60_000, blockMs: 600_000 });
      await beginDrain(store);
      await noteBackupBegun(store);
      store.advance(90_000);
      expect(await readMetric(metrics, 'webhooks_due')).to.equal(1);
      expect(await readMetric(metrics, 'oldest_webhook_seconds')).to.be.within(90, 150);
      expect(await readMetric(metrics, 'oldest_queued_seconds')).to.be.within(90, 150);
      expect(await readMetric(metrics, 'blocked_ips')).to.equal(1);
      expect(await readMetric(metrics, 'drain_seconds')).to.be.within(90, 150);
      expect(await readMetric(metrics, 'backup_age_seconds')).to.be.within(90, 150);
    } finally {
      await gauges.close();
      await redis.stop();
    }
  });
});

describe('metrics of jobs that were settled', () => {
  it('jobs_total, charges_total, overdrafts_total and unclassified_failures_total count them', async () => {
    const redis = await startTestRedis();
    const metrics = makeMetrics();
    try {
      const store = storeOf(redis.connection);
      const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
      const success = { ...endOf('cancelled'), success: true, code: null, blame: null };
      countSettledJob(metrics, job, {
        end: success as Parameters<typeof countSettledJob>[2]['end'],
        balance: 'overdraft',
        now: 0,
      });
      countSettledJob(metrics, job, { end: endOf('unclassified'), balance: '', now: 0 });
      expect(await readMetric(metrics, 'charges_total{endpoint="video",balance="overdraft"}')).to.equal(1);
      expect(await readMetric(metrics, 'overdrafts_total')).to.equal(1);
      expect(await readMetric(metrics, 'unclassified_failures_total')).to.equal(1);
      const failed = 'jobs_total{endpoint="video",outcome="failed",code="unclassified",blame="us"}';
      expect(await readMetric(metrics, failed)).to.equal(1);
    } finally {
      await redis.stop();
    }
  });
});

describe('metrics of a cluster', () => {
  it('kube_wait_seconds, cleanups_postponed, oldest_leaving_seconds, attempts_waiting and watch_age_seconds show its state', async () => {
    const metrics = makeMetrics();
    const quota = 'The quota of the cluster is used up';
    const reasons = [null, 'No node of the cluster has room for it', 'The image of the worker is missing', quota];
    setRunnerGauges(metrics, {
      client: { waitMs: () => 1_500 },
      cleanup: { countPostponed: () => 7 },
      state: { ageMs: () => 2_000, leavingSince: () => 10_000, attemptNames: () => ['0', '1', '2', '1', '3'] },
      seenOf: (name) => ({ is: 'waiting', reason: reasons[Number(name)] ?? null }),
      now: () => 40_000,
    });
    expect(await readMetric(metrics, 'kube_wait_seconds')).to.equal(1.5);
    expect(await readMetric(metrics, 'cleanups_postponed')).to.equal(7);
    expect(await readMetric(metrics, 'oldest_leaving_seconds')).to.equal(30);
    expect(await readMetric(metrics, 'watch_age_seconds')).to.equal(2);
    const waits = { starting: 1, pod: 1, room: 2, image: 1, admission: 0, container: 0 };
    for (const [wait, count] of Object.entries(waits))
      expect(await readMetric(metrics, `attempts_waiting{wait="${wait}"}`), wait).to.equal(count);
  });
});

describe('metrics of the API server', () => {
  it('kube_refused_total counts each answer 429', async () => {
    const { folder, remove } = aFolder();
    const metrics = makeMetrics();
    let refusals = 2;
    const server = createServer((_, res) => {
      if (refusals-- > 0) res.writeHead(429, { 'retry-after': '0' }).end('{}');
      else res.writeHead(200, { 'content-type': 'application/json' }).end('{"status":{"allowed":false}}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const cluster = { server: url, 'insecure-skip-tls-verify': true };
      const contexts = [{ name: 'test', context: { cluster: 'test', user: 'test' } }];
      const users = [{ name: 'test', user: {} }];
      const kubeconfig = { clusters: [{ name: 'test', cluster }], contexts, users, 'current-context': 'test' };
      const env = { KUBECONFIG: join(folder, 'kubeconfig') };
      writeFileSync(env.KUBECONFIG, JSON.stringify(kubeconfig));
      const address = { host: 'parts.test', port: 8080 };
      const config = {
        ...readConfig({ TRAWL_DATA: folder }),
        ...{ kubeNamespace: 'jobs', workerImage: 'worker:1', gatewayAddress: address, egressAddress: address },
      };
      const open = openKubernetesWorkers({
        ...{ config, env, now: Date.now, metrics, log: aLog().log, ending: new AbortController().signal },
      });
      const failure = await open().catch(({ message }: Error) => message);
      expect(failure).to.match(/^The cluster does not let this program do/);
      expect(await readMetric(metrics, 'kube_refused_total')).to.equal(2);
    } finally {
      server.closeAllConnections();
      server.close();
      remove();
    }
  });
});

describe('metrics of yt-dlp', () => {
  it('yt_dlp_info and yt_dlp_released_seconds show the version in use', async () => {
    const metrics = makeMetrics();
    showYtDlpVersion(programs.python, metrics, aLog().log);
    await until(async () => (await renderMetrics(metrics)).includes('trawl_yt_dlp_info{'), 20, 'the version is shown');
    expect(await readMetric(metrics, 'yt_dlp_released_seconds')).to.be.greaterThan(Date.UTC(2025, 0) / 1000);
  });
});
