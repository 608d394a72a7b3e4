import { expect } from 'chai';
import fc from 'fast-check';
import type { DueWebhook } from '../../src/store/webhooks/due-webhooks.ts';
import { makeFairQueue } from '../../src/webhooks/fair-queue.ts';

const limits = { all: 6, host: 4, receiver: 2, waitingOfHost: 10, waiting: 1000 };

function due(receiver: string, job: number | string): DueWebhook {
  return { receiver, jobId: String(job) };
}

function fill(receivers: readonly string[]) {
  const line = makeFairQueue(limits);
  for (const [n, receiver] of receivers.entries()) line.add(due(receiver, n), n);
  return line;
}

function takeAll(line: ReturnType<typeof makeFairQueue>): DueWebhook[] {
  const taken = [];
  for (let one = line.next(); one !== null; one = line.next()) taken.push(one);
  return taken;
}

describe('the line of webhooks', () => {
  const receivers = (line: ReturnType<typeof makeFairQueue>) => takeAll(line).map(({ receiver }) => receiver);

  it('lets two of a receiver go at once', () => {
    expect(receivers(fill(['a', 'a', 'a', 'b']))).to.deep.equal(['a', 'b', 'a']);
  });

  it('lets four of a host go at once, whatever the path', () => {
    expect(receivers(fill(['a/1', 'a/2', 'a/3', 'a/4', 'a/5', 'b/1']))).to.deep.equal([
      'a/1',
      'b/1',
      'a/2',
      'a/3',
      'a/4',
    ]);
  });

  it('lets six go at once, each host in its turn', () => {
    expect(receivers(fill(['a', 'a', 'b', 'b', 'c', 'c', 'd']))).to.deep.equal(['a', 'b', 'c', 'd', 'a', 'b']);
  });

  it('lets the next one go when one is over', () => {
    const line = fill(['a', 'a', 'a', 'a']);
    const [first, second] = takeAll(line);
    line.done(first!);
    expect(takeAll(line)).to.deep.equal([due('a', 2)]);
    line.done(second!);
    expect(takeAll(line)).to.deep.equal([due('a', 3)]);
  });

  it('knows one that waits or is under way, and forgets it when it is over', () => {
    const line = fill(['a']);
    line.add(due('a', 0), 0);
    const [only] = takeAll(line);
    line.add(due('a', 0), 0);
    expect(takeAll(line)).to.deep.equal([]);
    line.done(only!);
    line.add(due('a', 0), 0);
    expect(takeAll(line)).to.deep.equal([only]);
  });

  it('is full when as many wait or are under way as may', () => {
    const line = makeFairQueue({ ...limits, waiting: 2 });
    line.add(due('a', 1), 1);
    expect(line.isFull()).to.equal(false);
    line.add(due('b', 2), 2);
    expect(line.isFull()).to.equal(true);
  });

  it('serves each one once, in the order of time, however many a host has and whatever stays out', () => {
    const queues = fc.array(fc.constantFrom('a/1', 'a/2', 'b', 'c'), { maxLength: 200 });
    fc.assert(
      fc.property(queues, (all) => {
        const line = makeFairQueue(limits);
        const waiting = new Map(all.map((receiver, n) => [n, due(receiver, n)]));
        const served: DueWebhook[] = [];
        const read = (from: number, isEnough: () => boolean) => {
          for (const [at, one] of waiting) {
            if (at >= from) line.add(one, at);
            if (at >= from && isEnough()) return;
          }
        };
        read(0, () => false);
        for (let busy = takeAll(line); busy.length > 0; busy = takeAll(line)) {
          for (const one of busy) {
            served.push(one);
            waiting.delete(Number(one.jobId));
            line.done(one);
          }
          for (let lack = line.refill(); lack !== null; lack = line.refill()) read(lack.from, lack.isEnough);
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
