import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { freezeProcess } from '../support/freeze-process.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

describe('a command that waits for Redis with patience', () => {
  it('is not told that Redis is slow when the answer arrived while this process was halted', async () => {
    let told = 0;
    const patience = { timeoutMs: 60_000, onSlow: () => void told++ };
    const { connection, pid, stop } = await startTestRedis({}, undefined, { patience });
    try {
      const before = connection.calls();
      const goOn = await freezeProcess(pid());
      const answered = connection.read(['GET', 'key']);
      await until(() => connection.calls() > before, 5, 'the call is sent');
      for (let n = 0; n < 3; n++) await nextTurn();
      expect(told).to.equal(0);
      // After an immediate, timers fire before anything is read.
      setImmediate(() => {
        goOn();
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_000);
      });
      expect(await answered).to.equal(null);
      expect(told).to.equal(0);
    } finally {
      await stop();
    }
  });
});
