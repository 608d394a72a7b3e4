import { refuse } from '../base/errors.ts';
import type { AuditEntry } from '../model/audit.ts';
import { writeTime } from '../model/timestamp.ts';
import type { ReadArchivedPart } from '../store/log/archived-parts.ts';
import { readAudit } from '../store/log/read-audit.ts';
import { type DashboardRoute, readRoute } from './dashboard-app.ts';

const pageSize = 50;

/** The audit log of an account, which its owners and the operators read. */
export function auditRoutes(open: ReadArchivedPart): DashboardRoute[] {
  return [
    readRoute('/api/audit', async ({ req, store, accountId, signedIn }) => {
      if (signedIn.role !== 'owner' && signedIn.role !== 'operator') {
        throw refuse('forbidden', 'Only owners read the audit log');
      }
      const before = req.query.before === undefined ? undefined : String(req.query.before);
      // Nothing stands before 0-0, and Redis refuses to look there.
      if (before !== undefined && !/^(?!0+-0+$)\d{1,15}-\d{1,15}$/.test(before)) {
        throw refuse('bad_request', 'Bad Request: before must be the next of an earlier answer');
      }
      const entries = await readAudit(store, accountId, { limit: pageSize + 1, before, open });
      const page = entries.slice(0, pageSize);
      const changes = page.map((entry) => shapeOf(entry, signedIn.role === 'operator'));
      return { status: 200, body: { changes, next: entries.length > pageSize ? page.at(-1)!.entry : null } };
    }),
  ];
}

/** Owners learn that an operator made a change, not which user of which machine. */
function shapeOf({ at, via, who, from, action, target, change }: AuditEntry, isForOperators: boolean) {
  const author = via === 'command' && !isForOperators ? { who: 'operator', from: '' } : { who, from };
  return { at: writeTime(at), ...author, action, target, change };
}
