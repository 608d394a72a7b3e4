import { type LuaMutant, luaMutants } from '../mutation/lua-mutants.ts';

/** Beginnings of the names of general mutants that some history catches; the others break rules that no history has. */
const general = [
  ...['admit-call: admits without', 'admit-call: holds', 'admit-call: queues', 'cancel-job', 'retry-job'],
  ...['settle-job: charges', 'settle-job: keeps', 'settle-job: leaves', 'settle-job: logs', 'settle-job: sends'],
  ...['draw: takes the newest', 'take-jobs: takes more'],
];

const mutant = (name: string, within: string, place: RegExp, instead = ''): LuaMutant => {
  return { name, within, place, instead };
};

/** Scripts that lose a job, a slot or an attempt. */
const own = [
  mutant('take-jobs: leaves the job in the queue', 'taken', /redis\.call\('ZREM', queue, id\)\n/),
  mutant('take-jobs: gives the job no slot', 'taken', /redis\.call\('ZADD', openWork, .*, id\)/),
  mutant('start-attempt: records no attempt', 'started', /'HSET', job, 'attempt', attempt,/, "'HSET', job,"),
  mutant('retry-job: forgets a job that waits', 'waiting', /redis\.call\('ZADD', openWork, string.*, jobId\)/),
  mutant('retry-job: queues no job', 'waiting', /redis\.call\('ZADD', queue, fields\.created_at.*, jobId\)/),
  mutant('requeue-delayed: queues no job', 'early', /redis\.call\('ZADD', queue, seen\[2\].*, jobId\)/),
  mutant('end-job: leaves the job among the open ones', 'settled', /redis\.call\('ZREM', openWork, jobId\)\n/),
  mutant(
    'end-job: leaves a cancelled job where it stands',
    'cancelled',
    /if queued_at then redis\.call\('ZREM', queue, jobId\) end\n/,
  ),
];

/** Mutants of the scripts about jobs: a history must break a promise with each. */
export const jobMutants: readonly LuaMutant[] = [
  ...luaMutants.filter(({ name }) => general.some((begin) => name.startsWith(begin))),
  ...own,
];
