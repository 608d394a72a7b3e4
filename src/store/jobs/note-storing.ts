import type { Job } from '../../model/job.ts';
import { type Change, changeOf, type RecordStore, run, script } from '../script.ts';
import { ledJobKeyNames, readLedJob } from './read-open-job.ts';

/**
 * Notes since when a worker has ended well and its object cannot be confirmed (D75). The first time stays, unless it is
 * yet to come: the clock of Redis was ahead then, and the job would wait until that day.
 * Answers {'storing', since}, {'stale'}, {'already_ended'}, {'not_found'} or {'not_leading'}.
 */
const noteStoringScript = script('note-storing', 'always', ledJobKeyNames, [
  'term',
  'attempt',
  'metadata',
  'delivered',
])`${readLedJob('storing_since')}
if fields.attempt ~= attempt then return { 'stale' } end
if fields.storing_since ~= '' and tonumber(fields.storing_since) <= now then return { 'storing', fields.storing_since } end
redis.call('HSET', job, 'storing_since', now, 'metadata', metadata, 'delivered', delivered)
return { 'storing', now }
`;

export async function noteStoring(
  store: RecordStore,
  term: string,
  job: Pick<Job, 'id' | 'attempt'>,
  { metadata, delivered }: { metadata: unknown; delivered: unknown },
): Promise<Change<'stale' | 'already_ended' | 'not_found' | 'not_leading', { readonly since: number }>> {
  const reply = await run(store, noteStoringScript, {
    term,
    jobId: job.id,
    attempt: job.attempt,
    metadata: JSON.stringify(metadata),
    delivered: JSON.stringify(delivered),
  });
  return changeOf(reply, 'storing', { since: Number(reply[1]) });
}
