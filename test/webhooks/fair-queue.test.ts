import { expect } from 'chai';
import fc from 'fast-check';
import type { DueWebhook } from '../../src/store/webhooks/due-webhooks.ts';
import { makeFairQueue } from '../../src/webhooks/fair-queue.ts';

const limits = {
  maxAttempts: 8,
  maxAttemptsOfAccount: 6,
  maxAttemptsOfHost: 4,
  maxAttemptsOfReceiver: 2,
  maxAttemptsOfSlow: 4,
  maxQueuedOfAccount: 20,
  maxQueuedOfHost: 10,
  maxKnown: 1000,
};

type FairQueue = ReturnType<typeof makeFairQueue>;

function due(receiver: string, job: number | string): DueWebhook {
  return { receiver, id: String(job) };
}

function fill(receivers: readonly string[]) {
  const queue = makeFairQueue(limits);
  for (const [n, receiver] of receivers.entries()) queue.add(due(receiver, n), n);
  return queue;
}

function takeAll(queue: FairQueue): DueWebhook[] {
  const taken = [];
  for (let one = queue.next(); one !== null; one = queue.next()) taken.push(one);
  return taken;
}

describe('the fair queue of webhooks', () => {
  const receivers = (queue: FairQueue) => takeAll(queue).map(({ receiver }) => receiver);

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

  it('starts six attempts of an account at once and serves its hosts in turn', () => {
    expect(receivers(fill(['x@a', 'x@a', 'x@b', 'x@b', 'x@c', 'x@c', 'x@d']))).to.deep.equal([
      ...['x@a', 'x@b', 'x@c', 'x@d', 'x@a', 'x@b'],
    ]);
  });

  it('serves accounts in turn, however many hosts one of them names', () => {
    const hosts = Array.from({ length: 20 }, (_, n) => `x@${n}`);
    expect(receivers(fill([...hosts, 'y@0', 'y@0', 'z@0']))).to.deep.equal([
      ...['x@0', 'y@0', 'z@0', 'x@1', 'y@0', 'x@2', 'x@3', 'x@4'],
    ]);
  });

  it('counts the attempts of two accounts to one host apart', () => {
    const both = ['x', 'y'].flatMap((account) => [1, 2, 3, 4, 5].map((path) => `${account}@a/${path}`));
    expect(receivers(fill(both))).to.deep.equal([1, 2, 3, 4].flatMap((path) => [`x@a/${path}`, `y@a/${path}`]));
  });

  it('starts the next attempt of a receiver when one of its attempts ends', () => {
    const queue = fill(['a', 'a', 'a', 'a']);
    const [first, second] = takeAll(queue);
    queue.done(first!, 'answered');
    expect(takeAll(queue)).to.deep.equal([due('a', 2)]);
    queue.done(second!, 'failed');
    expect(takeAll(queue)).to.deep.equal([due('a', 3)]);
  });

  it('gives a receiver that hung one attempt at once until it answers, also after its queue was empty', () => {
    const queue = fill(['a', 'a']);
    for (const one of takeAll(queue)) queue.done(one, 'hung');
    for (const n of [2, 3, 4, 5]) queue.add(due('a', n), n);
    for (const end of ['failed', 'hung', 'answered'] as const) {
      const taken = takeAll(queue);
      expect(taken, end).to.have.length(1);
      queue.done(taken[0]!, end);
      queue.add(due('a', end), 9);
    }
    expect(takeAll(queue)).to.have.length(2);
  });

  it('gives hosts that hung half of all attempts at once, however many accounts name them, until they answer', () => {
    const accounts = Array.from({ length: 12 }, (_, n) => `${n}@a/`);
    const queue = fill([...accounts, ...accounts]);
    for (const one of takeAll(queue)) queue.done(one, 'hung');
    const taken = takeAll(queue);
    expect(taken).to.have.length(4);
    for (const n of [1, 2, 3, 4]) queue.add(due(`x@b/${n}`, `live ${n}`), 99);
    expect(receivers(queue)).to.deep.equal(['x@b/1', 'x@b/2', 'x@b/3', 'x@b/4']);
    queue.done(taken[0]!, 'answered');
    expect(receivers(queue)).to.deep.equal(['0@a/']);
  });

  it('gives hosts whose answers are slow half of all attempts, until they answer in time, and their receivers two each', () => {
    const accounts = Array.from({ length: 12 }, (_, n) => `${n}@a/`);
    const queue = fill([...accounts, ...accounts]);
    for (const one of takeAll(queue)) queue.done(one, 'answered', true);
    const taken = takeAll(queue);
    expect(taken).to.have.length(4);
    queue.done(taken[0]!, 'failed', true);
    expect(receivers(queue)).to.have.length(1);
    queue.done(taken[1]!, 'answered');
    expect(receivers(queue)).to.have.length(5);
    const slow = fill(['a', 'a', 'a']);
    for (const one of takeAll(slow)) slow.done(one, 'answered', true);
    for (const n of [3, 4]) slow.add(due('a', n), n);
    expect(receivers(slow)).to.deep.equal(['a', 'a']);
  });

  it('takes no host for a slow one whose attempt waited for egress and never reached it', () => {
    const accounts = Array.from({ length: 12 }, (_, n) => `${n}@a/`);
    const queue = fill([...accounts, ...accounts]);
    for (const one of takeAll(queue)) queue.done(one, 'unsent', true);
    expect(takeAll(queue)).to.have.length(8);
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
    queue.add(due('x@a', 1), 1);
    expect(queue.isFull()).to.equal(false);
    queue.add(due('y@a', 2), 2);
    expect(queue.isFull()).to.equal(true);
  });

  it('never keeps more than its limit in memory, and leaves nothing out when it is refilled from the record', () => {
    const many = { maxAttempts: 99, maxAttemptsOfAccount: 99, maxAttemptsOfHost: 99, maxAttemptsOfReceiver: 99 };
    const queue = makeFairQueue({ ...limits, ...many, maxKnown: 30 });
    const waiting = Array.from({ length: 90 }, (_, n) => ({ at: n, one: due(`${'xyzuvw'[n % 6]}@a`, n) }));
    const add = (from: number, isEnough: () => boolean) => {
      for (const { at, one } of [...waiting]) {
        if (at >= from) queue.add(one, at);
        if (isEnough()) return;
      }
    };
    add(0, () => false);
    for (let busy = takeAll(queue); busy.length > 0; busy = takeAll(queue)) {
      expect(busy.length).to.be.at.most(30);
      for (const one of busy) {
        waiting.splice(
          waiting.findIndex((each) => each.one === one),
          1,
        );
        queue.done(one);
      }
      for (let gap = queue.refill(); gap !== null; gap = queue.refill()) add(gap.from, gap.isEnough);
    }
    expect(waiting).to.deep.equal([]);
  });

  it('keeps a place in memory for another account, however many have more webhooks than there are places', () => {
    const queue = makeFairQueue({ ...limits, maxKnown: 60 });
    for (let n = 0; n < 400; n++) queue.add(due(`${n % 20}@${n}`, n), n);
    expect(queue.isFull()).to.equal(false);
    queue.add(due('y@a', 'other'), 400);
    const served: string[] = [];
    for (let busy = takeAll(queue); busy.length > 0; busy = takeAll(queue)) {
      for (const one of busy) queue.done(one);
      served.push(...busy.map(({ id }) => id));
    }
    expect(served.slice(0, 21)).to.include('other');
  });

  it('leaves webhooks of a full account in the record and still takes those of another', () => {
    const queue = fill(Array.from({ length: 30 }, (_, n) => `x@${n}`));
    queue.add(due('y@a', 'other'), 30);
    expect(receivers(queue)).to.include('y@a');
    expect(queue.refill()).to.equal(null);
    const served = Array.from({ length: 6 }, (_, n) => due(`x@${n}`, n));
    for (const one of served) queue.done(one);
    expect(queue.refill()).to.equal(null);
    for (const one of takeAll(queue)) queue.done(one);
    expect(queue.refill()?.from).to.equal(20);
  });

  it('serves every webhook once and each receiver in order of time, also when a full account or host is refilled from the record', () => {
    const names = ['x@a/1', 'x@a/2', 'x@b', 'x@c', 'y@a/1', 'y@b', 'c'];
    const queues = fc.array(fc.constantFrom(...names), { maxLength: 200 });
    const ends = fc.infiniteStream(fc.constantFrom('answered', 'failed', 'hung', 'refused'));
    fc.assert(
      fc.property(queues, ends, (all, how) => {
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
          for (const account of ['x@', 'y@']) {
            expect(busy.filter(({ receiver }) => receiver.startsWith(account)).length).to.be.at.most(6);
          }
          for (const one of busy) {
            served.push(one);
            waiting.delete(Number(one.id));
            queue.done(one, how.next().value);
          }
          for (let gap = queue.refill(); gap !== null; gap = queue.refill()) read(gap.from, gap.isEnough);
        }
        expect(waiting.size).to.equal(0);
        expect(new Set(served).size).to.equal(all.length);
        for (const receiver of names) {
          const jobs = served.filter((one) => one.receiver === receiver).map(({ id }) => Number(id));
          expect(jobs).to.deep.equal([...jobs].sort((x, y) => x - y));
        }
      }),
    );
  });
});
