import { type RecordStore, run, script } from '../script.ts';

/**
 * Notes that a job is watched: from now on its changes are published, until it ends. The answer waits for a replica, because
 * after a takeover without the note watchers would hear nothing more. Answers {'marked'} or {'not_open'}.
 */
const markWatchedScript = script('mark-watched', 'always', ['job'], [])`
if redis.call('EXISTS', job) == 0 then return { 'not_open' } end
redis.call('HSET', job, 'watched', '1')
return { 'marked' }
`;

/** Has the changes of an open job published. Called once a subscription to them is there, and before the job is read. */
export async function markWatched(store: RecordStore, jobId: string): Promise<void> {
  await run(store, markWatchedScript, { jobId });
}
