export interface BatchCounts {
  readonly queued: number;
  readonly running: number;
  readonly completed: number;
  readonly failed: number;
}

export const batchStatuses = ['Running', 'Completed', 'Cancelled'] as const;

export interface BatchSummary {
  readonly id: string;
  readonly status: (typeof batchStatuses)[number];
  readonly counts: BatchCounts;
  readonly credits: { readonly held: number; readonly charged: number };
}

/** A job costs one credit, held while it is open and charged when it completed. */
export function summarize(
  batch: { readonly id: string; readonly isCancelled: boolean },
  counts: BatchCounts,
): BatchSummary {
  const held = counts.queued + counts.running;
  const status = held > 0 ? 'Running' : batch.isCancelled ? 'Cancelled' : 'Completed';
  return { id: batch.id, status, counts, credits: { held, charged: counts.completed } };
}
