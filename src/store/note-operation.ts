import type { NotedChange } from '../model/audit.ts';
import { noteArgNames, noteChange, noteKeyNames, noteOf } from './lua/note-change.ts';
import { type RecordStore, run, script } from './script.ts';

/** Notes an operation in the audit log. Answers {'noted'}. */
const noteOperationScript = script(
  'note-operation',
  'always',
  noteKeyNames,
  noteArgNames,
  /* lua */ `${noteChange}
note_change()
return { 'noted' }
`,
);

/** Notes an operator's command whose own scripts write no entry; `accountId` is '' for one that concerns the whole service. */
export async function noteOperation(store: RecordStore, accountId: string, change: NotedChange): Promise<void> {
  await run(store, noteOperationScript, noteOf(store, accountId, change));
}
