import type { JobLimits } from '../../src/model/next.ts';

const hour = 3_600_000;

/** Limits of a job as the settings have them at first, with attempts of an hour. */
export const jobLimits: JobLimits = {
  maxAttempts: 3,
  maxInterruptions: 10,
  maxQueueMs: 24 * hour,
  maxStoringMs: 24 * hour,
  maxAttemptMs: hour,
};
