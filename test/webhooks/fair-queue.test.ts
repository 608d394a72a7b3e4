import { expect } from 'chai';
import fc from 'fast-check';
import type { DueWebhook } from '../../src/store/webhooks/due-webhooks.ts';
import { makeFairQueue } from '../../src/webhooks/fair-queue.ts';

const limits = { maxAttempts: 6, maxAttemptsOfHost: 4, maxAttemptsOfReceiver: 2, maxQueuedOfHost: 10, maxKnown: 1000 };

function due(receiver: string, job: number | string): DueWebhook {
  return { receiver, jobId: String(job) };
}

function fill(receivers: readonly string[]) {
  const queue = makeFairQueue(limits);
  for (const [n, receiver] of receivers.entries()) queue.add(due(receiver, n), n);
  return queue;
}

function takeAll(queue: ReturnType<typeof makeFairQueue>): DueWebhook[] {
  const taken = [];
  for (let one = queue.next(); one !== null; one = queue.next()) taken.push(one);
  return taken;
}

describe('the fair queue of webhooks', () => {
  const receivers = (queue: ReturnType<typeof makeFairQueue>) => takeAll(queue).map(({ receiver }) => receiver);

  it('starts two attempts of a receiver at once and then serves other receivers', () => {
    expect(receivers(fill(['a', 'a', 'a', 'b']))).to.deep.equal(['a', 'b', 'a']);
  });

  it('starts four attempts of a host at once, whatever their paths', () => {
    expect(receivers(fill(['a/1', 'a/2', 'a/3', 'a/4', 'a/5', 'b/1']))).to.deep.equal([
      'a/1',
      'b/1',
      'a/2',
      'a/3',
      'a/4',
    ]);
  });

  it('starts six attempts at once and serves the hosts in turn', () => {
    expect(receivers(fill(['a', 'a', 'b', 'b', 'c', 'c', 'd']))).to.deep.equal(['a', 'b', 'c', 'd', 'a', 'b']);
  });

  it('starts the next attempt of a receiver when one of its attempts ends', () => {
    const queue = fill(['a', 'a', 'a', 'a']);
    const [first, second] = takeAll(queue);
    queue.done(first!);
    expect(takeAll(queue)).to.deep.equal([due('a', 2)]);
    queue.done(second!);
    expect(takeAll(queue)).to.deep.equal([due('a', 3)]);
  });

  it('ignores a webhook that is queued or being sent, and takes it again once its attempt has ended', () => {
    const queue = fill(['a']);
    queue.add(due('a', 0), 0);
    const [only] = takeAll(queue);
    queue.add(due('a', 0), 0);
    expect(takeAll(queue)).to.deep.equal([]);
    queue.done(only!);
    queue.add(due('a', 0), 0);
    expect(takeAll(queue)).to.deep.equal([only]);
  });

  it('is full when queued webhooks and running attempts reach the limit together', () => {
    const queue = makeFairQueue({ ...limits, maxKnown: 2 });
    queue.add(due('a', 1), 1);
    expect(queue.isFull()).to.equal(false);
    queue.add(due('b', 2), 2);
    expect(queue.isFull()).to.equal(true);
  });

  it('serves every webhook once and each receiver in order of time, also when a full host is refilled from the record', () => {
    const queues = fc.array(fc.constantFrom('a/1', 'a/2', 'b', 'c'), { maxLength: 200 });
    fc.assert(
      fc.property(queues, (all) => {
        const queue = makeFairQueue(limits);
        const waiting = new Map(all.map((receiver, n) => [n, due(receiver, n)]));
        const served: DueWebhook[] = [];
        const read = (from: number, isEnough: () => boolean) => {
          for (const [at, one] of waiting) {
            if (at >= from) queue.add(one, at);
            if (at >= from && isEnough()) return;
          }
        };
        read(0, () => false);
        for (let busy = takeAll(queue); busy.length > 0; busy = takeAll(queue)) {
          for (const one of busy) {
            served.push(one);
            waiting.delete(Number(one.jobId));
            queue.done(one);
          }
          for (let gap = queue.refill(); gap !== null; gap = queue.refill()) read(gap.from, gap.isEnough);
        }
        expect(waiting.size).to.equal(0);
        expect(new Set(served).size).to.equal(all.length);
        for (const receiver of ['a/1', 'a/2', 'b', 'c']) {
          const jobs = served.filter((one) => one.receiver === receiver).map(({ jobId }) => Number(jobId));
          expect(jobs).to.deep.equal([...jobs].sort((x, y) => x - y));
        }
      }),
    );
  });
});
