import { inParallel } from '../base/in-parallel.ts';
import type { AuditEntry } from '../model/audit.ts';
import { writeTime } from '../model/timestamp.ts';
import { findLedgerAccount, readAccount } from '../store/accounts/read-accounts.ts';
import { readAudit } from '../store/log/read-audit.ts';
import { wholeService } from '../store/lua/note-change.ts';
import type { RecordStore } from '../store/script.ts';
import { command } from './command.ts';
import { readsAtOnce, slug, wholeNumber } from './command-values.ts';
import { listResult, timeText } from './text-table.ts';

export const auditCommands = {
  audit: command({
    text: 'Shows who changed which key, plan, balance, person, setting or secret of an account, or of everything, newest change first; changes are kept for a year.',
    json: '[{at, who, via, from, account, action, target, change}]',
    operands: {
      SLUG: { ...slug, text: 'Slug of the account, a removed one too; everything unless given.', optional: true },
    },
    options: { limit: { value: 'N', read: wholeNumber(1, 10_000), text: 'Most changes; 100 unless given.' } },
    run: async ({ SLUG, limit = 100 }, { store, readArchivedPart }) => {
      const id = SLUG === undefined ? wholeService : await findLedgerAccount(store, SLUG);
      const entries = await readAudit(store, id, { limit, open: readArchivedPart });
      const slugs = await readSlugs(store, entries);
      const slugOf = ({ account }: AuditEntry) => (account === '' ? null : (slugs.get(account) ?? account));
      return listResult(
        entries,
        ({ entry: _, at, ...rest }) => ({ ...rest, at: writeTime(at), account: slugOf({ ...rest, at, entry: '' }) }),
        (entry) => ({
          'at (UTC)': timeText(entry.at),
          who: entry.who,
          from: entry.from,
          account: slugOf(entry),
          action: entry.action,
          target: entry.target,
          change: Object.keys(entry.change).length === 0 ? '' : JSON.stringify(entry.change),
        }),
        'Nothing was changed.',
      );
    },
  }),
};

/** Returns the slugs of the accounts that entries name; removed accounts keep theirs. */
async function readSlugs(store: RecordStore, entries: readonly AuditEntry[]): Promise<Map<string, string>> {
  const ids = [...new Set(entries.map(({ account }) => account))].filter((id) => id !== '');
  return new Map(await inParallel(readsAtOnce, ids, async (id) => [id, (await readAccount(store, id)).slug] as const));
}
