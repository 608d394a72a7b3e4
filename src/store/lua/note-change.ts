/** Id under which the audit log of the whole service is kept. */
export const wholeService = 'all';

export const noteKeyNames = ['auditOfAll', 'auditOfOne', 'auditStreams'] as const;
export const noteArgNames = ['note', 'maxNotes'] as const;

/**
 * note_change() → true when the account has so many entries that a person may add nothing more. A script calls it once, behind
 * its checks and before its first write: `if note_change() then return { 'audit_full' } end`. Changes that the service makes by
 * itself have no author, and leave no entry.
 */
export const noteChange = /* lua */ `
local function note_change()
  if note == '' then return false end
  if maxNotes ~= '' and redis.call('XLEN', auditOfOne) >= tonumber(maxNotes) then return true end
  for _, stream in ipairs(auditOfOne == auditOfAll and { auditOfAll } or { auditOfAll, auditOfOne }) do
    if redis.call('EXISTS', stream) == 0 then redis.call('ZADD', auditStreams, now, stream) end
    local entry
    undos[#undos + 1] = function() if entry then redis.pcall('XDEL', stream, entry) end end
    entry = redis.call('XADD', stream, '*', 'at', now, 'note', note)
  end
  return false
end
`;
