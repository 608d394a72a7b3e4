/** Keys of every step that changes a job which has not ended. */
export const openJobKeyNames = ['job', 'endedJob'] as const;

/**
 * Lua of every step that changes a job which has not ended.
 *
 * read_open_job(names) → the named fields of `job`, or nil and the reply that refuses: {'not_found'}, {'already_ended'}.
 * is_counted(fields) → whether the last attempt counts already as a failure or an interruption.
 * next_revision(fields) → the revision after this step.
 * tell_watchers(fields) publishes that the job has changed, if it was ever watched.
 * mark(fields, attempt, …) → the marks of the attempts with one more: what an attempt begins or ends with.
 */
export const readOpenJob = /* lua */ `
local function read_open_job(names)
  local values = redis.call('HMGET', job, 'status', 'attempt', 'failures', 'interruptions', 'revision', 'attempts', 'created_at',
    'watched', unpack(names))
  if not values[1] then return nil, { redis.call('EXISTS', endedJob) == 1 and 'already_ended' or 'not_found' } end
  local fields = { status = values[1], attempt = values[2] or '0', failures = tonumber(values[3] or 0),
    interruptions = tonumber(values[4] or 0), revision = values[5], attempts = values[6] or '',
    created_at = values[7], is_watched = values[8] }
  for n, name in ipairs(names) do fields[name] = values[n + 8] or '' end
  return fields
end

local function is_counted(fields) return tonumber(fields.attempt) <= fields.failures + fields.interruptions end

local function next_revision(fields) return string.format('%d', fields.revision + 1) end

local function tell_watchers(fields)
  if fields.is_watched then redis.call('PUBLISH', jobChannel, jobId) end
end

local function mark(fields, attempt, ...)
  local one = cjson.encode({ tonumber(attempt), now - fields.created_at, ... })
  return fields.attempts == '' and one or fields.attempts .. ',' .. one
end
`;
