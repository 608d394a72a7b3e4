import { refuse } from '../../base/errors.ts';
import { type Actor, additions, type NotedChange, writeNote } from '../../model/audit.ts';
import { recordLimits } from '../../model/record-limits.ts';
import { keys } from '../keys.ts';

/** Id under which the audit log of the whole service is kept. */
export const wholeService = 'all';

/** Keys and arguments of every script whose changes are noted. */
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

/** Returns the values of `noteKeyNames` and `noteArgNames`; `accountId` is '' for a change of the service. */
export function noteOf({ actor }: { readonly actor?: Actor }, accountId: string, change: NotedChange) {
  return {
    auditOfAll: keys.audit(wholeService),
    auditOfOne: keys.audit(accountId === '' ? wholeService : accountId),
    note: actor === undefined ? '' : writeNote(actor, accountId, change),
    // An operator is trusted.
    maxNotes:
      actor?.via === 'dashboard' && accountId !== '' && additions.includes(change.action)
        ? recordLimits.auditEntriesOfAccount
        : '',
  };
}

/** Throws `too_many` when a script answered that the audit log is full. */
export function requireNoted([word]: readonly unknown[]): void {
  if (word !== 'audit_full') return;
  const most = `An account whose people made ${recordLimits.auditEntriesOfAccount} changes in two days`;
  throw refuse('too_many', `${most} gets no new key, person or passkey: try again tomorrow`);
}
