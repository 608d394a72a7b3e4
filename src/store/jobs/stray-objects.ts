import { uuidForm } from '../../model/job.ts';
import { keys, longId, shortId } from '../keys.ts';
import { findOld } from '../old-entries.ts';
import { type RecordStore, run, script } from '../script.ts';
import { readFileTimes, removedAtOnce } from './kept-files.ts';

/** More are not kept in mind at once; the next ones follow when these are gone. */
const maxStrays = 100_000;

/** Returns those of these jobs that have no right to an object: unknown ones, and ended ones whose files were removed. */
export async function findStrays(store: RecordStore, jobIds: readonly string[]): Promise<string[]> {
  const open = await store.connection.readAll(jobIds.map((id) => ['HGET', keys.job(id), 'id']));
  const others = jobIds.filter((_, n) => open[n] === null);
  // A job that has just ended has its file noted.
  const kept = await readFileTimes(store, others);
  return others.filter((_, n) => kept[n] === null);
}

/** Notes that these jobs were found now, unless they were before; their short ids follow its arguments. Answers {'noted'} or {'full'}. */
const noteStraysScript = script('note-strays', 'always', ['strays'], ['max'])`
if redis.call('ZCARD', strays) >= tonumber(max) then return { 'full' } end
for n = 4, #ARGV do redis.call('ZADD', strays, 'NX', string.format('%d', now), ARGV[n]) end
return { 'noted' }
`;

/** Notes when such a job was found first. */
async function noteStrays(store: RecordStore, jobIds: readonly string[]): Promise<void> {
  if (jobIds.length > 0) await run(store, noteStraysScript, { max: maxStrays }, { moreArgs: jobIds.map(shortId) });
}

/**
 * Returns the jobs among the first names of all objects that have no right to an object, and notes that they were found now: their
 * objects stay for a while.
 */
export async function listUnknownJobs(
  store: RecordStore,
  pages: AsyncIterable<readonly string[]>,
  goOn: () => boolean = () => true,
): Promise<string[]> {
  const unknown: string[] = [];
  for await (const names of pages) {
    if (!goOn()) break;
    const ids = names.filter((name) => uuidForm.test(name));
    const strays = await findStrays(store, ids);
    await noteStrays(store, strays);
    unknown.push(...strays);
  }
  return unknown;
}

/** Returns jobs that were found so long ago, at most 16. */
export async function findOldStrays(store: RecordStore, ageMs: number): Promise<string[]> {
  return (await findOld(store, keys.strays, ageMs, { count: removedAtOnce })).map(longId);
}

export async function dropStray(store: RecordStore, jobId: string): Promise<void> {
  await store.connection.send(['ZREM', keys.strays, shortId(jobId)]);
}

/** Tries a job again whose objects could not be removed, when others that were found then are due. */
export async function postponeStray(store: RecordStore, jobId: string, found: number): Promise<void> {
  await store.connection.send(['ZADD', keys.strays, 'XX', String(found), shortId(jobId)]);
}

export function countStrays(store: RecordStore): Promise<number> {
  return store.connection.read(['ZCARD', keys.strays]);
}
