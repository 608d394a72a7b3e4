import { jobStatuses } from '../../model/job.ts';
import { keys, shortId } from '../keys.ts';
import { leastOpen, placeOf } from '../lua/job-index.ts';
import { type RecordStore, run, script, text } from '../script.ts';

/**
 * Gives an open job whose hash is damaged or lost what its end calculates with. The index of its account still has its time and its
 * status, the open work whether it has a slot. Of its attempts, those that cannot be read count none, so that a job with a slot has an open
 * attempt and its end gives the slot back. Answers {'mended'}, or {'not_found'} where the account has no such open job.
 */
const mendJobScript = script('mend-job', 'always', ['job', 'jobs', 'openWork'], ['accountId', 'jobId', 'shortId'])`
local score = redis.call('ZSCORE', jobs, shortId)
if not score or tonumber(score) < ${leastOpen} then return { 'not_found' } end
local created_at, index = ${placeOf('score')}
local names = { 'status', 'created_at', 'revision', 'attempt', 'failures', 'interruptions', 'started_at', 'storing_since' }
local seen = redis.call('HMGET', job, unpack(names))
local function whole(n) return string.match(seen[n] or '', '^%d+$') and #seen[n] <= 16 and seen[n] or nil end
local function count(n) return seen[n] and whole(n) or not seen[n] and '0' or nil end

local status = (seen[1] == 'QueuedJob' or seen[1] == 'Running') and seen[1] or ({ '${jobStatuses.join("', '")}' })[index + 1]
local attempt, failures, interruptions = count(4), count(5), count(6)
local open = (tonumber(redis.call('ZSCORE', openWork, jobId)) or 0) < 0 and 1 or 0
if not attempt then
  failures, interruptions = failures or 0, interruptions or 0
  attempt = failures + interruptions + open
elseif not failures or not interruptions then
  failures, interruptions = math.max(0, attempt - open), 0
end
redis.call('HSET', job, 'id', jobId, 'account', accountId, 'status', status,
  'created_at', whole(2) or string.format('%d', created_at), 'revision', whole(3) or '1', 'attempt', string.format('%d', attempt),
  'failures', string.format('%d', failures), 'interruptions', string.format('%d', interruptions))
for n = 7, 8 do
  if not whole(n) then redis.call('HDEL', job, names[n]) end
end
return { 'mended' }
`;

/** Makes an open job ready to be ended whose record is damaged; changes nothing of any other. */
export async function mendJob(store: RecordStore, jobId: string): Promise<void> {
  const accountId = await findOwner(store, jobId);
  if (accountId !== null) await run(store, mendJobScript, { accountId, jobId, shortId: shortId(jobId) });
}

/** Returns the account in whose index a job stands: the one that its record names, or else any. */
async function findOwner({ connection }: RecordStore, jobId: string): Promise<string | null> {
  const named = text(await connection.read(['HGET', keys.job(jobId), 'account']));
  const lookUp = (ids: readonly string[]) =>
    connection.readAll(ids.map((id) => ['ZSCORE', keys.jobs(id), shortId(jobId)]));
  if ((await lookUp([named]))[0] !== null) return named;
  const ids = await connection.read(['HVALS', keys.slugs]);
  const scores = await lookUp(ids);
  return ids.find((_, n) => scores[n] !== null) ?? null;
}
