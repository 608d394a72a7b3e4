import { type JobStatus, jobStatuses } from '../../model/job.ts';

const step = 1 / 8;

/** Above the score of every job that was created in the same millisecond. */
export const lastOfMillisecond = step * jobStatuses.length;

/** Returns the creation and the status of a job from its score among the jobs of its account. */
export function readScore(score: number): { readonly created_at: number; readonly status: JobStatus | undefined } {
  const created_at = Math.floor(score);
  return { created_at, status: jobStatuses[(score - created_at) / step] };
}

/**
 * Lua of the score of a job among the jobs of its account: its creation in milliseconds, and its status in eighths of one,
 * so that a list by status reads no other job.
 *
 * score_of(created_at, status) → the score.
 */
export const jobIndex = /* lua */ `
local steps = { ${jobStatuses.map((status, n) => `${status} = ${n * step}`).join(', ')} }

local function score_of(created_at, status) return string.format('%.3f', tonumber(created_at) + steps[status]) end
`;
