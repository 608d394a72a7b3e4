import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import { maxClockDifferenceMs, type RecordClock } from './redis-time.ts';

const intervalMs = 1_000;

/** Shows what the clock of Redis does: says once when it jumps, and when this machine's clock differs from it too much. */
export function watchClock(clock: RecordClock, metrics: Metrics, log: Log): { close(): void } {
  let wasSteady = true;
  let wasOff = false;
  const look = () => {
    const [isSteady, aheadMs] = [clock.isSteady(), clock.machineAheadMs()];
    const isOff = Math.abs(aheadMs) > maxClockDifferenceMs;
    const seconds = Math.round(aheadMs) / 1000;
    metrics.clock_steady.set(isSteady ? 1 : 0);
    metrics.clock_difference_seconds.set(seconds);
    if (wasSteady && !isSteady)
      log.warn(
        'the clock of redis has jumped: nothing is removed or ended for its age until it was steady for 10 minutes',
      );
    if (!wasSteady && isSteady) log.info('the clock of redis was steady for 10 minutes');
    if (!wasOff && isOff) log.warn('the clock of this machine differs from that of redis, which decides', { seconds });
    if (wasOff && !isOff) log.info('the clock of this machine agrees with that of redis again');
    [wasSteady, wasOff] = [isSteady, isOff];
  };
  const timer = setInterval(look, intervalMs).unref();
  look();
  return { close: () => clearInterval(timer) };
}
