import type { Job } from '../../model/job.ts';
import { withRolledPeriod } from '../money/roll-period.ts';
import { type Change, changeOf, type RecordStore, run, script } from '../script.ts';
import { endJob, endJobArgNames, endJobIds, endJobKeyNames } from './end-job.ts';

/**
 * Ends a job as cancelled at once, in whatever state: its hold is released; the controller finds it ended and stops its
 * worker. Answers {'cancelled'}, {'already_ended', status}, {'not_found'} or {'roll'}.
 */
const cancelScript = script(
  'cancel',
  'always',
  endJobKeyNames,
  [...endJobArgNames, 'sentence'] as const,
  /* lua */ `${endJob}
local refused = read_job() or read_balances()
if refused then return refused end
end_job({ status = 'Error', code = 'cancelled', error = sentence, log = 400, metadata = '', delivered = '' })
return { 'cancelled' }
`,
);

export async function cancelJob(
  store: RecordStore,
  job: Pick<Job, 'id' | 'account' | 'key' | 'endpoint'>,
  sentence: string,
): Promise<Change<'already_ended' | 'not_found'>> {
  const reply = await withRolledPeriod(store, job.account, () =>
    run(store, cancelScript, { ...endJobIds(job), sentence }),
  );
  return changeOf(reply, 'cancelled');
}
