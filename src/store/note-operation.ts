import type { NotedChange } from '../model/audit.ts';
import { notedScript, type RecordStore, runNoted } from './script.ts';

/** Notes an operation in the audit log. Answers {'noted'}. */
const noteOperationScript = notedScript('note-operation', 'always', [], [])`
note_change()
return { 'noted' }
`;

/** Notes an operator's command whose own scripts write no entry; `accountId` is '' for one that concerns the whole service. */
export async function noteOperation(store: RecordStore, accountId: string, change: NotedChange): Promise<void> {
  await runNoted(store, noteOperationScript, {}, { accountId, ...change });
}
