import { expect } from 'chai';
import { makeWorkQueue, type WorkQueue } from '../../src/controller/work-queue.ts';
import { until } from '../support/until.ts';

describe('the work queue', () => {
  let begun: string[];
  let ends: Map<string, (again: number | null) => void>;
  let roomy: number;
  let queue: WorkQueue;

  beforeEach(() => {
    begun = [];
    ends = new Map();
    roomy = 0;
    // An id in capitals makes a worker, when it may.
    const work = async (id: string, claimStart: () => boolean) => {
      begun.push(id);
      if (id !== id.toLowerCase() && !claimStart()) return null;
      return new Promise<number | null>((resolve) => ends.set(id, resolve));
    };
    queue = makeWorkQueue({ maxRunning: 2, maxStarting: 1, work, onError: () => undefined, onRoom: () => roomy++ });
  });
  const end = async (id: string) => {
    const before = begun.length;
    ends.get(id)?.(null);
    await until(() => begun.length > before || roomy > 0, 1, `something follows ${id}`);
  };

  it('runs up to the limit at once, each id once at a time, and again an id that was added during its run', async () => {
    for (const id of ['a', 'b', 'a', 'c']) queue.add(id);
    expect(begun).to.deep.equal(['a', 'b']);
    await end('a');
    expect(begun).to.deep.equal(['a', 'b', 'c']);
    await end('c');
    expect(begun).to.deep.equal(['a', 'b', 'c', 'a']);
  });

  it('does not run an id again at once whose next run is further away than any timer, as after the clock went back a month', async () => {
    queue.add('a');
    ends.get('a')?.(30 * 86_400_000);
    await until(() => queue.hasRoom(), 1, 'the first run has ended');
    queue.add('b', 50);
    await until(() => begun.includes('b'), 1, 'a later timer has fired');
    expect(begun).to.deep.equal(['a', 'b']);
    ends.get('b')?.(null);
    await queue.close();
  });

  it('has room until it is full, and calls onRoom once when a slot frees up after a refusal', async () => {
    queue.add('a');
    expect(queue.hasRoom()).to.equal(true);
    queue.add('b');
    queue.add('c');
    expect(queue.hasRoom()).to.equal(false);
    await end('a');
    expect([begun.at(-1), roomy]).to.deep.equal(['c', 0]);
    await end('b');
    expect([queue.hasRoom(), roomy]).to.deep.equal([true, 1]);
    ends.get('c')?.(null);
    await queue.close();
    expect(roomy).to.equal(1);
  });

  it('counts an id that waits for a start as one that runs, and queues it again once a start has ended', async () => {
    for (const id of ['A', 'B']) queue.add(id);
    expect(queue.hasRoom()).to.equal(false);
    queue.add('c');
    await until(() => begun.includes('c'), 1, 'another id runs meanwhile');
    ends.get('c')?.(null);
    expect([begun, roomy]).to.deep.equal([['A', 'B', 'c'], 0]);
    await end('A');
    expect([begun, roomy]).to.deep.equal([['A', 'B', 'c', 'B'], 1]);
    expect(queue.hasRoom()).to.equal(true);
    ends.get('B')?.(null);
    await queue.close();
  });

  it('gives a start that has ended to the id that has waited longest for one, not to one that runs meanwhile', async () => {
    for (const id of ['A', 'B', 'c', 'D']) queue.add(id);
    await until(() => begun.includes('c'), 1, 'another id runs beside the start');
    ends.get('A')?.(null);
    await until(() => begun.includes('D') && ends.size === 3, 1, 'one more start is made');
    expect([...ends.keys()]).to.deep.equal(['A', 'c', 'B']);
    await end('B');
    expect(begun).to.deep.equal(['A', 'B', 'c', 'D', 'B', 'D']);
    for (const id of ['c', 'D']) ends.get(id)?.(null);
    await queue.close();
  });

  it('goes on doubling the delay of an id that fails after it has waited for a start', async () => {
    const [failedAt, { promise: held, resolve }]: [number[], PromiseWithResolvers<null>] = [
      [],
      Promise.withResolvers(),
    ];
    let triedAt = 0;
    const work = async (id: string, claimStart: () => boolean) => {
      if (id === 'b') triedAt = performance.now();
      if (!claimStart()) {
        if (id === 'b') resolve(null);
        return null;
      }
      if (id === 'a') return held;
      throw new Error('no start');
    };
    const onError = () => {
      failedAt.push(performance.now());
      if (failedAt.length === 2) failing.add('a');
    };
    const failing = makeWorkQueue({ maxRunning: 2, maxStarting: 1, work, onError, onRoom: () => undefined });
    failing.add('b');
    await until(() => failedAt.length === 4, 20, 'it has failed twice, waited, and failed twice');
    await failing.close();
    expect(triedAt - failedAt[2]!).to.be.at.least(700);
  });
});
