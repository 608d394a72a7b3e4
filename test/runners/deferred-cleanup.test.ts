import { expect } from 'chai';
import type { Left } from '../../src/runners/kubernetes/cleanup.ts';
import { type Lag, makeLag } from '../../src/runners/kubernetes/deferred-cleanup.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const left: Left = { job: null, pods: [] };

describe('what is left of attempts is let go later', () => {
  let reached: number;
  let gone: Left[];
  let refusal: Error | null;
  let hold: Promise<void>;
  let begun: number;
  let lag: Lag;
  const { log, lines } = aLog();

  beforeEach(() => {
    reached = Number.NEGATIVE_INFINITY;
    gone = [];
    refusal = null;
    hold = Promise.resolve();
    begun = 0;
    lag = makeLag({
      reached: () => reached,
      letGo: async (_, one) => {
        begun++;
        if (refusal) throw refusal;
        await hold;
        gone.push(one);
      },
      longestMilliseconds: 2_000,
      log,
    });
  });
  afterEach(() => lag.close());

  it('but not while the cluster keeps up', () => {
    reached = Number.POSITIVE_INFINITY;
    expect(lag.add('a-1', left)).to.equal(false);
    expect(lag.has('a-1')).to.equal(false);
  });

  it('all of it, once, as soon as the cluster keeps up again', async () => {
    const names = Array.from({ length: 30 }, (_, n) => `a-${n}`);
    for (const name of names) expect(lag.add(name, left)).to.equal(true);
    expect(names.filter(lag.has)).to.deep.equal(names);
    expect(gone).to.deep.equal([]);
    reached = Number.POSITIVE_INFINITY;
    await until(() => !names.some(lag.has), 10, 'all of it is let go');
    expect(gone).to.have.length(30);
  });

  it('each when its own turn comes, as far as the cluster has come', async () => {
    expect(lag.add('a-1', left)).to.equal(true);
    reached = performance.now() + 60_000;
    expect(lag.add('b-1', left), 'its turn has come already').to.equal(false);
    await until(() => !lag.has('a-1'), 5, 'the turn of the first has come');
    reached = performance.now() + 500;
    expect(lag.add('c-1', left), 'its turn comes later').to.equal(true);
  });

  it('of a thousand attempts, no more', () => {
    const isKept = Array.from({ length: 1_002 }, (_, n) => lag.add(`a-${n}`, left));
    expect(isKept.indexOf(false)).to.equal(1_000);
    expect(isKept.lastIndexOf(true)).to.equal(999);
  });

  it('none for longer than it may, although the cluster is behind for ever', async () => {
    lag.add('a-1', left);
    await until(() => !lag.has('a-1'), 10, 'it is let go');
    expect(gone).to.have.length(1);
  });

  it('nothing more after the end', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    hold = promise;
    for (let n = 0; n < 30; n++) lag.add(`a-${n}`, left);
    reached = Number.POSITIVE_INFINITY;
    await until(() => begun > 0, 5, 'it begins');
    lag.close();
    resolve();
    await until(() => gone.length === 8, 5, 'what had begun is done');
    expect(begun).to.equal(8);
  });

  it('what cannot be let go is told, and left to who looks around next', async () => {
    lag.add('a-1', left);
    refusal = new Error('not now');
    reached = Number.POSITIVE_INFINITY;
    await until(() => !lag.has('a-1'), 10, 'it is left');
    expect(JSON.parse(lines.at(-1) ?? '')).to.include({ level: 'warn', attempt: 'a-1' });
  });
});
