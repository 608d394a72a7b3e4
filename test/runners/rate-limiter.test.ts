import { expect } from 'chai';
import fc from 'fast-check';
import { makeRateLimiter } from '../../src/runners/kubernetes/rate-limiter.ts';

describe('the rate limiter of API requests', () => {
  it('lets a burst through, then one request after the other', () => {
    let now = 0;
    const pace = makeRateLimiter(10, 3, () => now);
    expect([1, 2, 3, 4, 5].map(() => pace.take())).to.deep.equal([0, 0, 0, 100, 200]);
    now = 300;
    expect(pace.take()).to.equal(0);
    expect([pace.waitMs(), pace.waitMs(), pace.take()]).to.deep.equal([100, 100, 100]);
  });

  it('halves its speed after a 429, and returns to its limit', () => {
    let now = 0;
    const pace = makeRateLimiter(10, 1, () => now);
    pace.halve();
    expect(pace.take()).to.equal(200);
    pace.halve();
    expect(pace.take()).to.be.above(400);
    now = 60_000;
    expect([pace.take(), pace.take()]).to.deep.equal([0, 100]);
  });

  it('is exhausted while requests wait for tokens', () => {
    let now = 0;
    const pace = makeRateLimiter(10, 1, () => now);
    pace.take();
    expect(pace.isExhausted()).to.equal(false);
    pace.take();
    expect(pace.isExhausted()).to.equal(true);
    now = 100;
    expect(pace.isExhausted()).to.equal(false);
  });

  it('keeps a sixteenth of its speed, however many 429s come', () => {
    const pace = makeRateLimiter(16, 1, () => 0);
    for (let n = 0; n < 100; n++) pace.halve();
    expect(pace.take()).to.equal(1000);
  });

  it('never lets more through than its burst and its speed allow', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 500 }), { minLength: 1, maxLength: 200 }), (gaps) => {
        let now = 0;
        const pace = makeRateLimiter(20, 5, () => now);
        const at = gaps.map((gap) => {
          now += gap;
          return now + pace.take();
        });
        const most = Math.max(...at);
        return at.filter((time) => time <= most).length <= 5 + (most / 1000) * 20 + 1;
      }),
    );
  });
});
