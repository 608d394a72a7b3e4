import { expect } from 'chai';
import type { AttemptCleanup, Leftovers } from '../../src/runners/kubernetes/cleanup.ts';
import { DeferredCleanup, PodWatermark } from '../../src/runners/kubernetes/deferred-cleanup.ts';
import { readJobSnapshot, readPodSnapshot } from '../../src/runners/kubernetes/snapshot.ts';
import { aRawJob, aRawPod, deleted } from '../support/cluster-objects.ts';
import { failureOf } from '../support/failure.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const leftBy = (phase: string): Leftovers => ({ job: null, pods: [readPodSnapshot(aRawPod({ status: { phase } }))] });
const ended = leftBy('Succeeded');

describe('deferred cleanup of attempts', () => {
  let watermark: number;
  let isExhausted: boolean;
  let removed: string[];
  let refusal: Error | null;
  let hold: Promise<void>;
  let started: number;
  let failed: string[];
  let cleanup: DeferredCleanup;
  const { log, lines } = aLog();

  const open = (hasQueue = false) => {
    const immediate: AttemptCleanup = {
      async remove(attemptName) {
        started++;
        if (refusal) throw refusal;
        await hold;
        removed.push(attemptName);
      },
      isPostponed: () => false,
      countPostponed: () => 0,
      close: () => {},
    };
    cleanup = new DeferredCleanup({
      ...{ immediate, hasQueue, log, maxDelayMs: 2_000 },
      state: { hide: () => {} },
      watermark: { value: () => watermark },
      isExhausted: () => isExhausted,
      onFailure: (attemptName) => failed.push(attemptName),
    });
  };

  beforeEach(() => {
    watermark = Number.NEGATIVE_INFINITY;
    isExhausted = false;
    removed = [];
    refusal = null;
    hold = Promise.resolve();
    started = 0;
    failed = [];
    open();
  });
  afterEach(() => cleanup.close());

  it('removes at once while pods start on time', async () => {
    watermark = Number.POSITIVE_INFINITY;
    await cleanup.remove('a-1', ended);
    expect(removed).to.deep.equal(['a-1']);
    expect(cleanup.isPostponed('a-1')).to.equal(false);
  });

  it('removes at once while our own requests wait for the rate limit', async () => {
    isExhausted = true;
    await cleanup.remove('a-1', ended);
    expect(removed).to.deep.equal(['a-1']);
  });

  it('removes at once what a pod has not ended by itself, what has no pod, and what Kueue counts', async () => {
    await cleanup.remove('running-1', leftBy('Running'));
    await cleanup.remove('empty-1', { job: null, pods: [] });
    cleanup.close();
    open(true);
    await cleanup.remove('queued-1', ended);
    expect(removed).to.deep.equal(['running-1', 'empty-1', 'queued-1']);
  });

  it('removes every postponed attempt once as soon as pods start on time again', async () => {
    const names = Array.from({ length: 30 }, (_, n) => `a-${n}`);
    for (const name of names) await cleanup.remove(name, ended);
    expect(names.filter((name) => cleanup.isPostponed(name))).to.deep.equal(names);
    expect(removed).to.deep.equal([]);
    watermark = Number.POSITIVE_INFINITY;
    await until(() => !names.some((name) => cleanup.isPostponed(name)), 10, 'every attempt is removed');
    expect(removed.toSorted()).to.deep.equal(names.toSorted());
  });

  it('removes each attempt when the watermark has passed its end', async () => {
    await cleanup.remove('a-1', ended);
    expect(cleanup.isPostponed('a-1')).to.equal(true);
    watermark = performance.now() + 60_000;
    await cleanup.remove('b-1', ended);
    expect(cleanup.isPostponed('b-1'), 'the watermark has passed its end already').to.equal(false);
    await until(() => !cleanup.isPostponed('a-1'), 5, 'the first attempt is removed');
    watermark = performance.now() + 500;
    await cleanup.remove('c-1', ended);
    expect(cleanup.isPostponed('c-1'), 'the watermark passes its end later').to.equal(true);
  });

  it('postpones at most 1,000 attempts', async () => {
    const names = Array.from({ length: 1_002 }, (_, n) => `a-${n}`);
    for (const name of names) await cleanup.remove(name, ended);
    expect(names.filter((name) => !cleanup.isPostponed(name))).to.deep.equal(['a-1000', 'a-1001']);
    expect(removed).to.deep.equal(['a-1000', 'a-1001']);
  });

  it('postpones no attempt for longer than its limit, even if pods stay late', async () => {
    await cleanup.remove('a-1', ended);
    await until(() => !cleanup.isPostponed('a-1'), 10, 'the attempt is removed');
    expect(removed).to.deep.equal(['a-1']);
  });

  it('starts no further cleanup after it was closed, and removes at most eight attempts at a time', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    hold = promise;
    for (let n = 0; n < 30; n++) await cleanup.remove(`a-${n}`, ended);
    watermark = Number.POSITIVE_INFINITY;
    await until(() => started > 0, 5, 'the cleanup begins');
    cleanup.close();
    resolve();
    await until(() => removed.length === 8, 5, 'the cleanups under way end');
    expect(started).to.equal(8);
  });

  it('postpones what comes while eight removals are held up, running pods too, and removes it after them', async () => {
    watermark = Number.POSITIVE_INFINITY;
    const { promise, resolve } = Promise.withResolvers<void>();
    hold = promise;
    const heldUp = Array.from({ length: 8 }, (_, n) => cleanup.remove(`a-${n}`, ended));
    await cleanup.remove('b-1', ended);
    await cleanup.remove('running-1', leftBy('Running'));
    expect([started, cleanup.isPostponed('b-1'), cleanup.isPostponed('running-1')]).to.deep.equal([8, true, true]);
    watermark = Number.NEGATIVE_INFINITY;
    resolve();
    await Promise.all(heldUp);
    await until(() => !cleanup.isPostponed('running-1'), 1, 'the running pod is removed although other pods are late');
    expect(removed).to.include('running-1');
  });

  /** Lets a removal fail, and acts in the pause that follows. */
  const inPause = async (act: () => Promise<void>) => {
    const usualNow = performance.now;
    const frozenAt = usualNow.call(performance);
    watermark = Number.POSITIVE_INFINITY;
    refusal = new Error('the admission webhook is away');
    performance.now = () => frozenAt;
    try {
      expect(await failureOf(cleanup.remove('a-1', ended))).to.equal(refusal);
      await act();
    } finally {
      performance.now = usualNow;
    }
  };

  it('tries no removal for a while after one has failed, and then goes on until one succeeds', async () => {
    await inPause(async () => {
      await cleanup.remove('b-1', ended);
      await cleanup.remove('b-2', leftBy('Failed'));
      expect([started, cleanup.countPostponed()]).to.deep.equal([1, 2]);
    });
    refusal = null;
    await until(() => removed.length === 2, 5, 'the postponed ones are removed');
    await cleanup.remove('c-1', ended);
    expect(removed).to.have.members(['b-1', 'b-2', 'c-1']);
  });

  it('stops a worker that still runs at once while removals pause, unless the cluster was told already', async () => {
    await inPause(async () => {
      refusal = null;
      // Its success would end the pause.
      hold = new Promise(() => {});
      for (const phase of ['Running', 'Pending']) void cleanup.remove(`${phase}-1`, leftBy(phase));
      expect([started, cleanup.countPostponed()]).to.deep.equal([3, 0]);
      const told = readPodSnapshot(aRawPod({ metadata: deleted }));
      await cleanup.remove('told-1', { job: null, pods: [told] });
      expect([started, cleanup.countPostponed()]).to.deep.equal([3, 1]);
    });
  });

  it('removes a Job that may still get its pod at once while removals pause, and none that has ended or waits for Kueue', async () => {
    await inPause(async () => {
      refusal = null;
      hold = new Promise(() => {});
      void cleanup.remove('waiting-1', { job: readJobSnapshot(aRawJob()), pods: [] });
      expect([started, cleanup.countPostponed()]).to.deep.equal([2, 0]);
      const failed = aRawJob({ conditions: [['Failed', 'BackoffLimitExceeded']] });
      await cleanup.remove('ended-1', { job: readJobSnapshot(failed), pods: [] });
      await cleanup.remove('told-1', { job: readJobSnapshot(aRawJob({ metadata: deleted })), pods: [] });
      const suspended = aRawJob({ conditions: [['Suspended', 'JobSuspended']] });
      void cleanup.remove('suspended-1', { job: readJobSnapshot(suspended), pods: [] });
      expect([started, cleanup.countPostponed()]).to.deep.equal([2, 3]);
    });
  });

  it('logs a failed cleanup and leaves the attempt to the controller', async () => {
    await cleanup.remove('a-1', ended);
    refusal = new Error('not now');
    watermark = Number.POSITIVE_INFINITY;
    await until(() => failed.length > 0, 5, 'the failure is reported');
    expect(failed).to.deep.equal(['a-1']);
    expect(cleanup.isPostponed('a-1')).to.equal(false);
    expect(lines.join('')).to.include('the postponed cleanup of an attempt failed');
  });
});

describe('the watermark of pod creation', () => {
  let at: number;
  let watermark: PodWatermark;
  /** Jobs appear, each so long after the one before. */
  const addJobs = (count: number, apartMs: number) => {
    for (let n = 0; n < count; n++, at += apartMs) watermark.count(`a-${n}`, true, false);
  };
  /** The pods of some of them appear, each so long after the one before. */
  const addPods = (from: number, to: number, apartMs: number) => {
    for (let n = from; n < to; n++) {
      at += apartMs;
      watermark.count(`a-${n}`, true, true);
    }
  };

  beforeEach(() => {
    at = 1_000;
    watermark = new PodWatermark(() => at);
  });

  it('is +Infinity while pods start on time, and while no Job waits for one', () => {
    expect(watermark.value()).to.equal(Number.POSITIVE_INFINITY);
    addJobs(5, 10);
    addPods(0, 4, 40);
    expect(watermark.value(), 'one Job waits, no pod was late').to.equal(Number.POSITIVE_INFINITY);
    at += 1_000;
    addPods(4, 5, 0);
    expect(watermark.value(), 'one pod was late, no Job waits').to.equal(Number.POSITIVE_INFINITY);
  });

  it('is -Infinity while pods are late but appear faster than ten a second', () => {
    addJobs(200, 5);
    addPods(0, 150, 50);
    expect(watermark.value()).to.equal(Number.NEGATIVE_INFINITY);
  });

  it('is the time of the oldest Job without a pod while the API limit makes pods late', () => {
    addJobs(200, 5);
    addPods(0, 50, 120);
    expect(watermark.value()).to.equal(1_000 + 50 * 5);
    watermark.count('a-50', false, false);
    expect(watermark.value(), 'a deleted Job does not wait').to.equal(1_000 + 51 * 5);
  });

  it('is +Infinity again when no pod has appeared for two seconds', () => {
    addJobs(200, 5);
    addPods(0, 50, 120);
    at += 1_999;
    expect(watermark.value()).to.equal(1_000 + 50 * 5);
    at += 1;
    expect(watermark.value()).to.equal(Number.POSITIVE_INFINITY);
  });

  it('counts each pod once', () => {
    addJobs(200, 5);
    addPods(0, 25, 120);
    for (let n = 0; n < 20; n++) watermark.count('a-0', true, true);
    expect(watermark.value()).to.equal(1_000 + 25 * 5);
  });
});
