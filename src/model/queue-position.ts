export interface JobStanding {
  /** Jobs of the account that wait before it; `null` when it was taken and is about to start. */
  readonly before: number | null;
  readonly running: number;
  readonly concurrency: number | null;
  readonly stage: string | null;
}

/** Returns the queue position as callers see it: among the account's own jobs, with the reason for the wait and an estimate. */
export function queueJson(
  standing: JobStanding,
  averageSeconds: number | null,
): { position: number; eta_seconds: number | null; reason: string } {
  const { before, running, concurrency, stage } = standing;
  if (before === null) return { position: 0, eta_seconds: 0, reason: stage ?? 'It is about to start' };
  const isLimited = concurrency !== null && running >= concurrency;
  const reason = isLimited ? 'The account runs as many jobs at once as it may' : 'It waits for a free worker';
  const rounds = Math.ceil((before + 1) / Math.max(1, running));
  const eta_seconds = averageSeconds === null ? null : Math.max(1, Math.round(rounds * averageSeconds));
  return { position: before + 1, eta_seconds, reason };
}
