/** Keys of every step that changes a job which has not ended, and of those that the leading controller takes. */
export const openJobKeyNames = ['job', 'endedJob'] as const;
export const ledJobKeyNames = ['lead', ...openJobKeyNames] as const;

/** Lua that ends the script when the hash of the job is not there, because it has ended or never was. */
const refuseMissing = `{ redis.call('EXISTS', endedJob) == 1 and 'already_ended' or 'not_found' }`;

/**
 * Lua that reads the named fields of a job into locals such as `job_status`, `false` where it has none, or ends the script with
 * {'not_found'} or {'already_ended'}. For steps that a job takes often: locals cost Redis less than a table.
 */
export function readOpenFields(names: string): string {
  const fields = ['status', ...names.split(' ')];
  return `local ${fields.map((name) => `job_${name}`).join(', ')} = unpack(redis.call('HMGET', job, '${fields.join("', '")}'))
if not job_status then return ${refuseMissing} end
`;
}

/**
 * Lua of every other step that changes a job which has not ended.
 *
 * read_open_job() → the named fields of `job` and those that the functions below need, or nil and the reply that refuses:
 *   {'not_found'}, {'already_ended'}.
 * is_counted(fields) → whether the last attempt counts already as a failure or an interruption.
 * next_revision(fields) → the revision after this step.
 * tell_watchers(fields) publishes that the job has changed, if it was ever watched.
 * mark(fields, attempt, code, counts, reason) → the marks of the attempts with one more: what an attempt begins (no code) or ends with,
 *   its stages among it where `stages` is one of the named fields.
 */
export function readOpenJob(names = ''): string {
  const more = names.split(' ').filter((name) => name !== '');
  const fields = [
    'status',
    'attempt',
    'failures',
    'interruptions',
    'revision',
    'attempts',
    'created_at',
    'watched',
    ...more,
  ];
  return /* lua */ `
local function read_open_job()
  local ${fields.join(', ')} = unpack(redis.call('HMGET', job, '${fields.join("', '")}'))
  if not status then return nil, ${refuseMissing} end
  return { status = status, attempt = attempt or '0', failures = tonumber(failures or 0),
    interruptions = tonumber(interruptions or 0), revision = revision, attempts = attempts or '', created_at = created_at,
    is_watched = watched${more.map((name) => `, ${name} = ${name} or ''`).join('')} }
end

local function is_counted(fields) return tonumber(fields.attempt) <= fields.failures + fields.interruptions end

local function next_revision(fields) return string.format('%d', fields.revision + 1) end

local function tell_watchers(fields)
  if fields.is_watched then redis.call('PUBLISH', jobChannel, jobId) end
end

local function mark(fields, attempt, code, counts, reason)
  local since = now - fields.created_at
  local stages = code and fields.stages ~= '' and fields.stages or nil
  local one
  -- cjson escapes foreign text; numbers, codes and stages of this record need no escapes.
  if reason then one = cjson.encode({ tonumber(attempt), since, code, counts, reason, stages })
  elseif stages then one = string.format('[%d,%d,"%s",0,0,"%s"]', attempt, since, code, stages)
  else one = string.format(code and '[%d,%d,"%s"]' or '[%d,%d]', attempt, since, code) end
  return fields.attempts == '' and one or fields.attempts .. ',' .. one
end
`;
}

/** Lua that begins a step of the leading controller with the `fields` of the job, or ends the script with {'not_leading'} or why they cannot be read. */
export function readLedJob(names = ''): string {
  return /* lua */ `${readOpenJob(names)}
if redis.call('GET', lead) ~= term then return { 'not_leading' } end
local fields, refused = read_open_job()
if refused then return refused end`;
}
