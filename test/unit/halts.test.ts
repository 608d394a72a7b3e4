import { mock } from 'node:test';
import { expect } from 'chai';
import { failureOf } from '../support/failure.ts';
import { timed } from '../support/turn-length.ts';
import { until } from '../support/until.ts';

describe('tests in a process that is halted', () => {
  const usualNow = performance.now;
  afterEach(() => {
    performance.now = usualNow;
    mock.timers.reset();
  });
  /** Has the clock go on as if the process was halted meanwhile. */
  const halt = (milliseconds: number) => {
    const { now } = performance;
    performance.now = () => now.call(performance) + milliseconds;
  };

  it('wait for a condition that comes true a moment after the halt', async () => {
    let looks = 0;
    const look = () => {
      if (++looks === 2) halt(60_000);
      return looks === 4;
    };
    expect(await until(look, 5, 'it is looked at four times')).to.equal(true);
  });

  it('wait for no condition for ever', async () => {
    const look = () => halt(500) as undefined;
    expect(await failureOf(until(look, 1, 'it happens'))).to.have.property('message', 'Not within 6 s: it happens');
  });

  it('wait for no condition longer because it is slow to answer', async () => {
    mock.timers.enable({ apis: ['setInterval'] });
    let looks = 0;
    const look = () => {
      looks++;
      for (let n = 0; n < 20; n++) {
        halt(900);
        mock.timers.tick(50);
      }
    };
    expect(await failureOf(until(look, 1, 'it happens'))).to.have.property('message', 'Not within 6 s: it happens');
    expect(looks).to.equal(1);
  });

  it('leave the halt out of the time that a call takes, also when the answer comes with the end of the halt', async () => {
    const { seconds } = await timed(
      new Promise<void>((resolve) =>
        setImmediate(() => {
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
          resolve();
        }),
      ),
    );
    expect(seconds).to.be.below(0.3);
  });
});
