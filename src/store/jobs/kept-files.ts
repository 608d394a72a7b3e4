import { keys, longId, shortId } from '../keys.ts';
import { findOld } from '../old-entries.ts';
import { type RecordStore, run, script } from '../script.ts';
import { readEnd, writeEnd } from './ended-job.ts';

/**
 * A job that may have files in the object store has a score of its end minus this among the jobs that have ended, which is
 * below zero until the year 2286: the job stays until its files are gone. Minus this alone: they are to go at once.
 */
const keptFileShift = 10_000_000_000_000;

/** Lua of the score of an ended job with files that count from a time. */
export function fileScore(at: string): string {
  return `string.format('%d', ${at} - ${keptFileShift})`;
}

/**
 * Gives an ended job the score of one without files, and marks the one that it delivered as removed: its age alone would not say so once
 * `TRAWL_FILE_HOURS` is raised. Answers {'dropped'} or {'not_kept'}.
 */
const dropFileScript = script('drop-file', 'always', ['ended', 'endedJob'], ['shortId'])`${readEnd}
local score = redis.call('ZSCORE', ended, shortId)
if not score or tonumber(score) >= 0 then return { 'not_kept' } end
local words, marks, texts = read_end()
if words and words.status == 'C' and words.removed_at == '' then
  words.removed_at = string.format('%d', now)
  ${writeEnd((name) => `words.${name}`, 'marks', 'texts')}
end
if words then redis.call('ZADD', ended, words.ended_at, shortId) else redis.call('ZREM', ended, shortId) end
return { 'dropped' }
`;

/** Each costs several requests to the object store, which may take 50 ms each. */
export const removedAtOnce = 16;

/**
 * Returns jobs whose files are to be removed, at most 16: their end has reached an age, their caller removed the file, or they left some
 * without a result.
 */
export async function findOldFiles(store: RecordStore, ageMs: number): Promise<string[]> {
  return (await findOld(store, keys.ended, ageMs, { shift: keptFileShift, count: removedAtOnce })).map(longId);
}

export async function dropFile(store: RecordStore, jobId: string): Promise<void> {
  await run(store, dropFileScript, { jobId, shortId: shortId(jobId) });
}

/** Removes a file that could not be removed only when other files of that time are due. */
export async function postponeFile(store: RecordStore, jobId: string, ended: number): Promise<void> {
  await store.connection.send(['ZADD', keys.ended, 'XX', String(ended - keptFileShift), shortId(jobId)]);
}

/** Returns of each of these jobs since when its files count, 0 for those that are to go at once; `null` for one without files. */
export async function readFileTimes(
  { connection }: RecordStore,
  jobIds: readonly string[],
): Promise<(number | null)[]> {
  const scores = await connection.readAll(jobIds.map((id) => ['ZSCORE', keys.ended, shortId(id)]));
  return scores.map((score) => (score === null || Number(score) >= 0 ? null : Number(score) + keptFileShift));
}
