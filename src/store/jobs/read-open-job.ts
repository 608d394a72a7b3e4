/**
 * Lua of every step that changes a job which has not ended.
 *
 * read_open_job(names) → the named fields of `job`, or nil and the reply that refuses: {'not_found'}, {'already_ended', status}.
 * is_counted(fields) → whether the last attempt counts already as a failure or an interruption.
 */
export const readOpenJob = /* lua */ `
local function read_open_job(names)
  local values = redis.call('HMGET', job, 'status', 'attempt', 'failures', 'interruptions', unpack(names))
  local status = values[1]
  if not status then return nil, { 'not_found' } end
  if status ~= 'QueuedJob' and status ~= 'Running' then return nil, { 'already_ended', status } end
  local fields = { status = status, attempt = values[2] or '0', failures = tonumber(values[3] or 0),
    interruptions = tonumber(values[4] or 0) }
  for n, name in ipairs(names) do fields[name] = values[n + 4] or '' end
  return fields
end

local function is_counted(fields) return tonumber(fields.attempt) <= fields.failures + fields.interruptions end
`;
