import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'chai';
import { endChild, keepRunning, killGroup } from '../../src/base/child-process.ts';

describe('a child process', () => {
  it('is started again each time it ends, with growing delays that a long run resets', async () => {
    const stopping = new AbortController();
    const delays: number[] = [];
    let [starts, passedMs] = [0, 0];
    const usualNow = performance.now;
    performance.now = () => passedMs;
    const start = () => {
      starts++;
      const run = async () => {
        await null;
        if (starts === 3) passedMs += 350;
        return starts;
      };
      return { ended: run() };
    };
    const onEnd = (end: unknown, delayMs: number) => {
      delays.push(delayMs);
      if (end === 4) stopping.abort();
    };
    const kept = keepRunning({ start, firstMs: 2, maxMs: 100, steadyMs: 300, signal: stopping.signal, onEnd });
    await kept.finally(() => {
      performance.now = usualNow;
    });
    expect([starts, delays]).to.deep.equal([4, [2, 4, 2, 4]]);
  });

  it('is not started again once the signal has fired, and its end is waited for', async () => {
    const stopping = new AbortController();
    const ended = Promise.withResolvers<string>();
    const start = () => expect.fail('started again');
    const onEnd = () => expect.fail('reported');
    const first = { ended: ended.promise };
    const kept = keepRunning({ start, first, firstMs: 1, maxMs: 1, steadyMs: 1, signal: stopping.signal, onEnd });
    stopping.abort();
    ended.resolve('asked for');
    await kept;
  });

  it('ends on SIGTERM without SIGKILL when it obeys', async () => {
    const child = spawn('sleep', ['60'], { stdio: 'ignore' });
    await endChild(child, once(child, 'exit'), 60_000);
    expect(child.signalCode).to.equal('SIGTERM');
  });

  it('is killed with its whole group when it ignores SIGTERM for too long', async () => {
    const script = 'trap "" TERM; echo ready; sleep 60 & wait; wait';
    const child = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
    await once(child.stdout, 'data');
    // The output closes only when the grandchild that holds it has ended as well.
    await endChild(child, once(child, 'close'), 20, 'group');
    expect(child.signalCode).to.equal('SIGKILL');
    killGroup(child, 'SIGKILL');
  });
});
