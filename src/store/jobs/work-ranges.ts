/**
 * All open jobs stand in one sorted set, so that a step that moves a job writes one score. Their order is:
 * 1. Jobs with a slot: when they got it, minus this, which is below zero until the year 2286. They are few, and every take counts them.
 * 2. Jobs in a queue: their creation.
 * 3. Jobs that wait before another attempt: when it may begin, plus this.
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
