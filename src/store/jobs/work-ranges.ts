/**
 * All open jobs stand in one sorted set, so that a step that moves a job writes one score: jobs with a slot by the time when they got
 * it minus this, which is below zero until the year 2286, jobs in a queue by their creation, and jobs that wait before another attempt
 * by the time when it may begin plus this. Those with a slot are few and come first, because every take counts them.
 */
export const workShift = 10_000_000_000_000;

/** Least and greatest score of each kind, as commands take them. */
export const workRanges = {
  active: ['-inf', '(0'],
  queued: ['0', `(${workShift}`],
  delayed: [`${workShift}`, '+inf'],
} as const;

/** Lua of the number of jobs with a slot. */
export const countActive = `redis.call('ZCOUNT', openWork, '${workRanges.active.join("', '")}')`;
