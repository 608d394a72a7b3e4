import { type RecordStore, run, script, text } from './script.ts';

/** Gives an empty record its layout. Answers {'at', number of the layout that it has}, or {'restoring'}. */
const layoutScript = script(
  'layout',
  'always',
  ['schema', 'restoring'] as const,
  ['newest'] as const,
  /* lua */ `
if redis.call('EXISTS', restoring) == 1 then return { 'restoring' } end
local present = redis.call('GET', schema)
if not present then redis.call('SET', schema, newest) end
return { 'at', present or newest }
`,
);

/** The record's layout that this release writes, and the only one that it reads. */
export const schemaNumber = 3;

/** Gives an empty record this release's layout; one with another layout stops the start with a sentence. */
export async function prepareSchema(store: RecordStore): Promise<void> {
  const reply = await run(store, layoutScript, { newest: schemaNumber });
  if (reply[0] === 'restoring') {
    throw new Error('The record is being restored: wait for its end, or repeat a restore that was broken off');
  }
  const present = Number(text(reply[1]));
  if (present === schemaNumber) return;
  const [age, remedy] =
    present > schemaNumber
      ? ['newer', 'use a newer release']
      : ['older', 'use the release that wrote it, or begin with an empty Redis'];
  throw new Error(
    `The record has layout ${present}, which is ${age} than this release knows (${schemaNumber}): ${remedy}`,
  );
}

/** Returns true for a layout that this release reads. */
export function isReadableLayout(layout: number): boolean {
  return layout === schemaNumber;
}
