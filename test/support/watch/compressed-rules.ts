import { alerts, rulesFile } from '../alerts.ts';
import { read } from '../tree.ts';

/** Seconds of a rule that pass in one second of a drill, in which Prometheus reads and judges each second instead of twice a minute. */
export const clockFactor = 30;
/** Counts of events in a window: 30 times fewer happen in a compressed one, but then a single event would fire. */
const countFactor = 4;
/**
 * Ages that trawl itself measures pass at their real speed: their limits are divided by less, so that a slow machine reaches none. The
 * API server of Kubernetes may say nothing to a watch for a minute, and jobs wait in the queue as long as the watch is stale.
 */
const ageFactors = { oldest: 12, oldest_queued: 2, watch: 2 } as const;
type AgeKind = keyof typeof ageFactors;
const agePattern = /^(.*trawl_(oldest_queued|oldest|watch)(?:_\w+)?_seconds\b.*> )(\d+)$/gm;
const secondsOf: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/**
 * Returns the rules of the chart with every window and every `for` divided by 30, and every limit of an age by 12 or 2. Their clock is
 * `aheadSeconds` ahead of that of this machine: the release of yt-dlp that the tests use grows old by itself.
 */
export function compressRules(aheadSeconds = 0): string {
  return read(rulesFile)
    .replaceAll('time()', `(time() + ${Math.round(aheadSeconds)})`)
    .replaceAll(/(\bfor: |\[)(\d+)([smhd])/g, (_, before, count, unit) => {
      return `${before}${Math.max(1, Math.round((Number(count) * secondsOf[unit]!) / clockFactor))}s`;
    })
    .replaceAll(/^(.*\bincrease\(.*>=? )(\d+)$/gm, (_, before, limit) => `${before}${Number(limit) / countFactor}`)
    .replaceAll(agePattern, (_, before, kind: AgeKind, limit) => `${before}${Number(limit) / ageFactors[kind]}`);
}

/** Seconds of a drill before anything that rules count happened. */
export interface Prelude {
  /** Seconds that passed in the drill. */
  readonly seconds: number;
  /** Seconds that a usual installation takes longer, because the drill shortens limits of Kubernetes. */
  readonly moreSeconds: number;
}

/**
 * Returns the seconds until an alert fires at the usual speed of rules, when it took so many in a drill. What counts events in a window
 * is as many times slower from the first event on; otherwise trawl notices the fault at its usual speed, and only the `for` and the
 * limit of an age are longer.
 */
export function usualSeconds(name: string, seconds: number, prelude: Prelude = { seconds: 0, moreSeconds: 0 }): number {
  const { expr = '', for: held = '0s' } = alerts.find(({ alert }) => alert === name) ?? {};
  const before = prelude.seconds + prelude.moreSeconds;
  if (/\[\d+[smhd]\]/.test(expr)) return before + (seconds - prelude.seconds) * clockFactor;
  const heldSeconds = Number(held.slice(0, -1)) * secondsOf[held.at(-1)!]!;
  const [[, , kind, limit = 0] = []] = expr.matchAll(agePattern);
  const age = Number(limit);
  const compressed = heldSeconds / clockFactor + age / (kind ? ageFactors[kind as AgeKind] : 1);
  return prelude.moreSeconds + Math.max(0, seconds - compressed) + heldSeconds + age;
}
