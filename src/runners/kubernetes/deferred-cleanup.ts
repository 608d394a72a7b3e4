import type { Log } from '../../base/log.ts';
import type { Left } from './cleanup.ts';

export interface LagOptions {
  /** How far the cluster has come with making pods: Jobs that were seen first before that have theirs. */
  readonly reached: () => number;
  readonly letGo: (name: string, left: Left) => Promise<void>;
  readonly log: Log;
  readonly longestMilliseconds?: number;
}

/** Attempts that are let go later, because others wait for their pods. */
export interface Lag {
  has(name: string): boolean;
  /** Keeps what is left of an attempt for later, unless now is as good. */
  add(name: string, left: Left): boolean;
  /** Leaves them as they are: the next full pass, of whoever leads then, lets them go. */
  close(): void;
}

const most = 1_000;
const longestMilliseconds = 120_000;
const lookMilliseconds = 500;
const atOnce = 8;
/** The controller of Jobs comes back to one a second after what it saw of its pod: its end, or of a short one its beginning. */
const turnMilliseconds = 600;

/**
 * The controller of Jobs may write 20 times a second unless its cluster says otherwise: twice for a pod that it makes, and for one that
 * has ended three times, or once when it is let go before. It takes Jobs in the order in which they became due. What has ended is in
 * the record, so whoever waits for a pod goes first, until its own turn comes.
 */
export function makeLag({ reached, letGo, log, longestMilliseconds: longest = longestMilliseconds }: LagOptions): Lag {
  const waiting = new Map<string, { readonly left: Left; readonly since: number }>();
  const going = new Set<string>();
  const isDue = (since: number) => reached() >= since + turnMilliseconds || performance.now() - since >= longest;
  const goOn = (): void => {
    for (const [name, { left, since }] of waiting) {
      if (going.size >= atOnce || !isDue(since)) return;
      if (going.has(name)) continue;
      going.add(name);
      void finish(name, left).then(goOn);
    }
  };
  const finish = async (name: string, left: Left) => {
    await letGo(name, left).catch((error) =>
      log.warn('what is left of an attempt stays for now', { attempt: name, error }),
    );
    waiting.delete(name);
    going.delete(name);
  };
  const timer = setInterval(goOn, lookMilliseconds);
  return {
    has: (name) => waiting.has(name),
    add(name, left) {
      const since = performance.now();
      if (waiting.size >= most || isDue(since)) return false;
      waiting.set(name, { left, since });
      return true;
    },
    close() {
      clearInterval(timer);
      waiting.clear();
    },
  };
}
