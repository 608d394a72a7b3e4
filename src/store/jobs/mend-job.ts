import { keys, shortId } from '../keys.ts';
import { leastOpen, placeOf } from '../lua/job-index.ts';
import { type RecordStore, run, script, text } from '../script.ts';

/**
 * Gives an open job whose hash is damaged or lost what its end calculates with, and changes nothing of one that is whole. The index of its
 * account still has its time and its status, the open work whether it has a slot. Of its attempts, those that cannot be read count none, so
 * that its end gives back a slot where it has one, and none where it waits. Answers {'mended'}, or {'not_found'} where the account has no
 * such open job. Repeatable.
 */
const mendJobScript = script('mend-job', 'always', ['job', 'jobs', 'openWork'], ['accountId', 'jobId', 'shortId'])`
local score = redis.call('ZSCORE', jobs, shortId)
if not score or tonumber(score) < ${leastOpen} then return { 'not_found' } end
local created_at, index = ${placeOf('score')}
local names = { 'status', 'revision', 'attempt', 'failures', 'interruptions', 'started_at', 'storing_since', 'id', 'account', 'created_at' }
local seen = redis.call('HMGET', job, unpack(names))
local function whole(n) return string.match(seen[n] or '', '^%d+$') and #seen[n] <= 16 and seen[n] or nil end
local function count(n) return seen[n] and whole(n) or not seen[n] and '0' or nil end

local status = (seen[1] == 'QueuedJob' or seen[1] == 'Running') and seen[1] or index == 1 and 'Running' or 'QueuedJob'
local attempt, failures, interruptions = count(3), count(4), count(5)
local open = (tonumber(redis.call('ZSCORE', openWork, jobId)) or 0) < 0 and 1 or 0
if attempt and not (failures and interruptions) then failures, interruptions = math.max(0, attempt - open), 0 end
local counted = (failures or 0) + (interruptions or 0)
-- A job without a slot has no open attempt, one with a slot at most one.
if not attempt or attempt - counted > open then attempt = counted + open end
local written = {}
local function write(n, value, default)
  if (seen[n] or default) ~= value then written[#written + 1], written[#written + 2] = names[n], value end
end
write(8, jobId)
write(9, accountId)
write(1, status)
write(10, string.format('%d', created_at))
write(2, whole(2) or '1')
for n, value in pairs({ [3] = attempt, [4] = failures or 0, [5] = interruptions or 0 }) do write(n, string.format('%d', value), '0') end
if #written > 0 then redis.call('HSET', job, unpack(written)) end
for n = 6, 7 do
  if (seen[n] or '') ~= '' and not whole(n) then redis.call('HDEL', job, names[n]) end
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
