import { isEnded, type JobStatus, jobStatuses } from '../../model/job.ts';

/** Scores of one millisecond: one for each status. */
const width = 8;
/** The open jobs of an account follow those that have ended. */
const openShift = 1_000_000_000_000_000;

/** Least score of jobs with a status that ends, or with any other. */
export function startOf(status: JobStatus): number {
  return isEnded(status) ? 0 : openShift;
}

/** Commands take it as the least score of an open job. */
export const leastOpen = `${openShift}`;

/** Returns the scores of the jobs of a range that were created in a millisecond: the least one, and the one behind the last. */
export function scoresAt(start: number, created_at: number): readonly [number, number] {
  return [start + created_at * width, start + (created_at + 1) * width];
}

function offsetOf(status: JobStatus): number {
  return startOf(status) + jobStatuses.indexOf(status);
}

export function readScore(score: number): { readonly created_at: number; readonly status: JobStatus | undefined } {
  const place = score % openShift;
  return { created_at: Math.floor(place / width), status: jobStatuses[place % width] };
}

/** Lua of the score of a job with a status that is known, of a number or its text. Whole numbers cost Redis half of others. */
export function scoreOf(created_at: string, status: JobStatus): string {
  return `string.format('%d', ${created_at} * ${width} + ${offsetOf(status)})`;
}

/** Lua of the same with a status that stands in a local or field. */
export function scoreOfStatus(created_at: string, status: string): string {
  const chosen = jobStatuses.map((one) => `${status} == '${one}' and ${offsetOf(one)}`).join(' or ');
  return `string.format('%d', ${created_at} * ${width} + (${chosen}))`;
}

/** Lua of the time and of the place of the status among all, out of the score of an open job. */
export function placeOf(score: string): string {
  return `math.floor((${score} - ${openShift}) / ${width}), (${score} - ${openShift}) % ${width}`;
}

/** Lua of the number of open jobs of an account. */
export const countOpenJobs = `redis.call('ZCOUNT', jobs, '${leastOpen}', '+inf')`;
