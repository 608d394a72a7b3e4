import { noteArgNames, noteChange, noteKeyNames, noteOf } from '../audit/note-change.ts';
import { type RecordStore, run, script } from '../script.ts';

/** Notes in the audit log that the record was restored. Answers {'noted'}. */
const noteRestoreScript = script(
  'note-restore',
  'always',
  noteKeyNames,
  noteArgNames,
  /* lua */ `${noteChange}
note_change()
return { 'noted' }
`,
);

/** `takenAt`: when the backup was taken, as its manifest says. */
export async function noteRestore(store: RecordStore, takenAt: string): Promise<void> {
  const change = { taken_at: takenAt };
  await run(store, noteRestoreScript, noteOf(store, '', { action: 'record.restore', target: '', change }));
}
