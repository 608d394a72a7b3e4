import { finish, finishArgs, finishKeys } from '../lua/finish.ts';
import { script } from '../script.ts';

/**
 * Ends a job, once: final status, charge or release, ledger, request-log line, statistics and webhook in one step.
 * Only an attempt that is open completes a job. A repetition, a late attempt and a controller that does not lead change nothing.
 * Answers {'settled', balance that was charged or ''}, {'already_ended', status}, {'stale'}, {'not_found'}, {'roll'} or
 * {'not_leading'}.
 */
export const settle = script(
  'settle',
  'always',
  [...finishKeys, 'lead'] as const,
  [...finishArgs, 'holder', 'attempt', 'status', 'code', 'sentence', 'log', 'metadata', 'delivered'] as const,
  /* lua */ `${finish}
if redis.call('GET', lead) ~= holder then return { 'not_leading' } end
local refused = read_job()
if refused then return refused end
if j.attempt ~= attempt or (status == 'CompletedJob' and not is_attempt_open()) then return { 'stale' } end
refused = open_books()
if refused then return refused end
return { 'settled', finish({ status = status, code = code, error = sentence, log = log, metadata = metadata, delivered = delivered }) }
`,
);
