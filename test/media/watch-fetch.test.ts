import { appendFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Failed } from '../../src/media/tools.ts';
import { watchFetch } from '../../src/media/watch-fetch.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';

const limits = { fileBytes: 1e6, inspectSeconds: 1, slowBytes: 2, slowSeconds: 0.5 };
/** Looks of the watch that last longer than `slowSeconds`, however fast the machine is. */
const looks = 6;

describe('The watch over a fetch', () => {
  const { folder, remove } = aFolder();
  const file = join(folder, 'part');
  after(remove);

  /** Watches a file that each look finds as the step before has left it; returns how it ended, if it did. */
  const watch = async (steps: readonly ('grow' | 'begin anew' | 'stand still')[]): Promise<string | null> => {
    writeFileSync(file, '');
    let done = 0;
    let ended: Failed | null = null;
    const told = () => {
      const step = steps[done];
      if (step === 'begin anew') truncateSync(file);
      if (step === 'begin anew' || step === 'grow') appendFileSync(file, Buffer.alloc(1000));
      done += 1;
    };
    const stop = watchFetch(folder, limits, false, told, (reason) => {
      ended ??= reason;
    });
    await until(() => ended !== null || done > steps.length, 30, 'the watch has looked so often').finally(stop);
    return (ended as Failed | null)?.code ?? null;
  };
  const times = <T>(count: number, step: T): T[] => Array.from({ length: count }, () => step);

  it('leaves a file alone that grows, and begins anew in the middle', async () => {
    expect(await watch([...times(looks, 'grow' as const), 'begin anew', ...times(looks, 'grow' as const)])).to.equal(
      null,
    );
  });

  it('ends a file as too slow that stands still after it began anew', async () => {
    const steps = [...times(looks, 'grow' as const), 'begin anew' as const, ...times(100, 'stand still' as const)];
    expect(await watch(steps)).to.equal('too_slow');
  });
});
