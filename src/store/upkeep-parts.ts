import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { RecordStore } from './script.ts';

/** Parts of everything that works on the record by itself: the record, and where its work is counted and logged. */
export interface UpkeepParts {
  readonly store: RecordStore;
  readonly metrics: Metrics;
  readonly log: Log;
}
