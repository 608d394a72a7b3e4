import { expect } from 'chai';
import { makeMetrics, renderMetrics } from '../../src/base/metrics.ts';
import { StorageLane } from '../../src/controller/storage-lane.ts';
import { StorageProbe } from '../../src/controller/storage-probe.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

describe('the calls of the object store', () => {
  let isAway: boolean;
  let isFull: boolean;
  let isSilent: boolean;
  let mayRemove: boolean;
  let probes: number;
  let trials: number;
  let stored: string[];
  let asked: string[];
  let probe: StorageProbe;
  let lane: StorageLane;
  let metrics: ReturnType<typeof makeMetrics>;

  beforeEach(() => {
    isAway = false;
    isFull = false;
    isSilent = false;
    mayRemove = true;
    probes = 0;
    trials = 0;
    stored = [];
    asked = [];
    metrics = makeMetrics();
    const see = async () => {
      probes += 1;
      if (isAway) throw new Error('it is away');
      return null;
    };
    const keep = async (key: string) => {
      trials += 1;
      if (isSilent) await new Promise(() => {});
      // As S3 may answer a conditional write, which changes nothing.
      if (stored.includes(key)) return;
      if (isFull) throw new Error('it is full');
      stored.push(key);
    };
    const remove = async (prefix: string) => {
      if (!mayRemove) throw new Error('it keeps everything');
      stored = stored.filter((key) => !key.startsWith(prefix));
    };
    probe = new StorageProbe({ objects: { see, keep, remove }, metrics, log: aLog().log, firstMs: 5 });
    lane = new StorageLane({ probe, log: aLog().log, again: (jobId) => asked.push(jobId), firstMs: 5 });
  });
  afterEach(() => {
    lane.close();
    probe.close();
  });
  const readiness = () => renderMetrics(metrics).then((text) => /^trawl_object_store_ready (\d)$/m.exec(text)?.[1]);
  const fail = async () => {
    throw new Error('it fails');
  };

  it('run 16 at once, each job once, and the others in their turn', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const begun: string[] = [];
    const names = Array.from({ length: 40 }, (_, n) => `job ${n}`);
    for (const name of [...names, 'job 0', 'job 39'])
      lane.add(name, () => {
        begun.push(name);
        return promise;
      });
    expect(begun).to.deep.equal(names.slice(0, 16));
    resolve();
    await lane.settled();
    expect(begun.toSorted()).to.deep.equal(names.toSorted());
  });

  it('of one job that fail are repeated with back-off while those of others go on', async () => {
    lane.add('bad', fail);
    await lane.settled();
    expect([probe.isAway(), probes]).to.deep.equal([false, 1]);
    let isDone = false;
    lane.add('good', async () => {
      isDone = true;
    });
    await lane.settled();
    expect(isDone).to.equal(true);
    let early = 0;
    lane.add('bad', async () => early++);
    await lane.settled();
    expect(early, 'before its next try').to.equal(0);
    await until(() => asked.length > 0, 2, 'the job to be asked again');
    expect(asked).to.deep.equal(['bad']);
  });

  it('are made by one probe alone while the object store is away, and by every job when it answers again', async () => {
    isAway = true;
    lane.add('first', fail);
    await lane.settled();
    expect(await renderMetrics(metrics)).to.contain('trawl_object_store_ready 0');
    let calls = 0;
    const names = Array.from({ length: 300 }, (_, n) => `job ${n}`);
    for (const name of names) expect(lane.add(name, async () => calls++)).to.equal(false);
    const before = probes;
    await until(() => probes > before + 1, 5, 'the probe to ask again');
    expect(calls).to.equal(0);
    isAway = false;
    await until(() => asked.includes('job 299'), 5, 'the jobs to be asked');
    expect(asked.filter((name) => name.startsWith('job')).toSorted()).to.deep.equal(names.toSorted());
    expect(await renderMetrics(metrics)).to.contain('trawl_object_store_ready 1');
    expect(lane.add('job 1', async () => calls++)).to.equal(true);
    await lane.settled();
    expect(calls).to.equal(1);
  });

  it('calls that wait for a place when the object store goes away are asked for again, optional ones are dropped', async () => {
    isAway = true;
    const { promise, reject } = Promise.withResolvers<void>();
    for (let n = 0; n < 16; n++) lane.add(`job ${n}`, () => promise);
    let calls = 0;
    lane.add('waits', async () => calls++);
    lane.addOptional('optional', async () => calls++);
    reject(new Error('it is away'));
    await lane.settled();
    expect(asked).to.include('waits');
    expect(asked).not.to.include('optional');
    expect(calls).to.equal(0);
  });

  it('show no place for files from one that could not be stored until a trial object can be written', async () => {
    expect(probe.takesFiles()).to.equal(true);
    isFull = true;
    probe.doubt();
    expect(probe.takesFiles(), 'before the trial').to.equal(false);
    await until(() => trials > 1, 5, 'a second trial');
    expect([probe.takesFiles(), probe.isAway(), await readiness()]).to.deep.equal([false, false, '0']);
    isFull = false;
    await until(() => probe.takesFiles(), 5, 'a trial object to be written');
    expect([await readiness(), stored]).to.deep.equal(['1', []]);
  });

  it('tell by the metric that no download begins, also while the trial gets no answer', async () => {
    isSilent = true;
    probe.doubt();
    await until(() => trials === 1, 5, 'the trial');
    expect([probe.takesFiles(), await readiness()]).to.deep.equal([false, '0']);
  });

  it('take files again although the trial object cannot be removed', async () => {
    mayRemove = false;
    probe.doubt();
    await until(() => probe.takesFiles(), 5, 'the trial to count');
  });

  it('do not take a trial object that was left behind for one that was written', async () => {
    stored = ['probe/trial'];
    isFull = true;
    probe.doubt();
    await until(() => trials > 1, 5, 'a second trial');
    expect([probe.takesFiles(), stored]).to.deep.equal([false, []]);
  });
});
