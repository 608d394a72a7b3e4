import { failures } from '../../base/errors.ts';
import type { Job } from '../../model/job.ts';
import { withRolledPeriod } from '../money/roll-period.ts';
import { type Change, changeOf, type RecordStore, run, script } from '../script.ts';
import { type EndingJob, endJob, endJobArgNames, endJobKeyNames, endJobValues } from './end-job.ts';
import { packTexts } from './ended-job.ts';
import { mendJob } from './mend-job.ts';

/**
 * Ends a job as cancelled at once, in whatever state: its hold is released; the controller finds it ended and stops its
 * worker. Answers {'cancelled'}, {'already_ended'}, {'not_found'} or {'roll'}.
 */
const cancelJobScript = script('cancel-job', 'always', endJobKeyNames, endJobArgNames)`${endJob}
local refused = read_job() or read_balances()
if refused then return refused end
end_job({ status = 'Error', code = 'cancelled', log = 400, reason = '' })
return { 'cancelled' }
`;

export async function cancelJob(
  store: RecordStore,
  job: EndingJob & Pick<Job, 'unreadable'>,
): Promise<Change<'already_ended' | 'not_found'>> {
  if (job.unreadable) await mendJob(store, job.id);
  const texts = packTexts({ ...job, error: failures.cancelled.sentence, metadata: null, delivered: null });
  const reply = await withRolledPeriod(store, job.account, () => run(store, cancelJobScript, endJobValues(job, texts)));
  return changeOf(reply, 'cancelled');
}
