import { expect } from 'chai';
import { makeWaits, type Waits } from '../../src/runners/kubernetes/pod-latency.ts';

const all = Number.POSITIVE_INFINITY;
const none = Number.NEGATIVE_INFINITY;

describe('how far the cluster has come with making pods', () => {
  let at: number;
  let waits: Waits;
  /** Jobs are seen first, each so long after the one before. */
  const seeJobs = (count: number, apart: number) => {
    for (let n = 0; n < count; n++, at += apart) waits.note(`a-${n}`, true, false);
  };
  /** Their pods come, from one to another, each so long after the one before. */
  const seePods = (from: number, to: number, apart: number) => {
    for (let n = from; n < to; n++) {
      at += apart;
      waits.note(`a-${n}`, true, true);
    }
  };

  beforeEach(() => {
    at = 1_000;
    waits = makeWaits(() => at);
  });

  it('is no question while pods come soon, or nobody waits', () => {
    expect(waits.reached()).to.equal(all);
    seeJobs(5, 10);
    seePods(0, 4, 40);
    expect(waits.reached(), 'one waits, none was late').to.equal(all);
    at += 1_000;
    seePods(4, 5, 0);
    expect(waits.reached(), 'one was late, none waits').to.equal(all);
  });

  it('is nowhere while pods come late, but faster than a limited cluster makes them', () => {
    seeJobs(200, 5);
    seePods(0, 150, 50);
    expect(waits.reached()).to.equal(none);
  });

  it('is at the Job that has waited longest where the cluster is limited', () => {
    seeJobs(200, 5);
    seePods(0, 50, 120);
    expect(waits.reached()).to.equal(1_000 + 50 * 5);
    waits.note('a-50', false, false);
    expect(waits.reached(), 'a Job that goes waits no more').to.equal(1_000 + 51 * 5);
  });

  it('is no question any more when no pod comes at all: nobody knows that one will', () => {
    seeJobs(200, 5);
    seePods(0, 50, 120);
    at += 1_999;
    expect(waits.reached()).to.equal(1_000 + 50 * 5);
    at += 1;
    expect(waits.reached()).to.equal(all);
  });

  it('counts a pod once, whatever is seen of it later', () => {
    seeJobs(200, 5);
    seePods(0, 25, 120);
    for (let n = 0; n < 20; n++) waits.note('a-0', true, true);
    expect(waits.reached()).to.equal(1_000 + 25 * 5);
  });
});
