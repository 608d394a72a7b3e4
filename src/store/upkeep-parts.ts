import type { Fields, Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { RecordStore } from './script.ts';

/** Parts of everything that works on the record by itself: the record, and where its work is counted and logged. */
export interface UpkeepParts {
  readonly store: RecordStore;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** Returns a function that counts and logs an error of a periodic task, which goes on. */
export function reportUpkeep(
  { metrics, log }: { readonly metrics: Pick<Metrics, 'upkeep_errors_total'>; readonly log: Log },
  task: string,
  sentence: string,
  fields: Fields = {},
): (error: unknown) => void {
  return (error) => {
    metrics.upkeep_errors_total.inc({ task });
    log.warn(sentence, { ...fields, error });
  };
}
