import { expect } from 'chai';
import { backoffMs, retry } from '../../src/base/backoff.ts';

const limits = { firstMs: 1, maxMs: 4 };

describe('back-off', () => {
  it('doubles the delay with each failure up to the maximum', () => {
    expect([1, 2, 3, 4, 2000].map((failures) => backoffMs(failures, limits))).to.deep.equal([1, 2, 4, 4, 4]);
  });

  it('spreads a delay with jitter over half to one and a half of it', () => {
    const delays = Array.from({ length: 200 }, () => backoffMs(3, { ...limits, hasJitter: true }));
    expect(Math.min(...delays)).to.be.within(2, 3);
    expect(Math.max(...delays)).to.be.within(5, 6);
  });

  it('retries until the action succeeds and returns its value', async () => {
    let tries = 0;
    const action = async () => {
      if (++tries < 3) throw new Error('not yet');
      return 'done';
    };
    expect(await retry(action, limits)).to.equal('done');
    expect(tries).to.equal(3);
  });

  it('throws the error for which no delay is given, after the delays before it', async () => {
    const seen: number[][] = [];
    const delayOf = (_: unknown, delayMs: number, failures: number) => {
      seen.push([delayMs, failures]);
      return failures < 3 ? 0 : null;
    };
    const failed = await retry(() => Promise.reject(new Error('no')), { ...limits, delayOf }).catch(String);
    expect(failed).to.equal('Error: no');
    expect(seen).to.deep.equal([
      [1, 1],
      [2, 2],
      [4, 3],
    ]);
  });

  it('begins with the first delay again after the action has called reset', async () => {
    const delays: number[] = [];
    let tries = 0;
    const action = async (reset: () => void) => {
      if (++tries === 3) reset();
      if (tries < 5) throw new Error('not yet');
    };
    const delayOf = (_: unknown, delayMs: number) => {
      delays.push(delayMs);
      return 0;
    };
    await retry(action, { ...limits, delayOf });
    expect(delays).to.deep.equal([1, 2, 1, 2]);
  });

  it('throws the last error as soon as the signal fires, in the middle of a delay too', async () => {
    const ending = new AbortController();
    let tries = 0;
    const action = () => {
      tries++;
      setTimeout(() => ending.abort(), 5);
      return Promise.reject(new Error('no'));
    };
    const failed = await retry(action, { firstMs: 60_000, maxMs: 60_000, signal: ending.signal }).catch(String);
    expect([failed, tries]).to.deep.equal(['Error: no', 1]);
  });
});
