import { type RecordStore, run, script, text } from './script.ts';

/**
 * Moves the record's layout from one number to the next; a record without a number begins at the newest.
 * Answers {'at', number}: who asks compares it with the numbers it knows.
 */
const migrateScript = script(
  'migrate',
  'always',
  ['schema'] as const,
  ['from', 'to'] as const,
  /* lua */ `
local present = redis.call('GET', schema)
if not present or present == from then
  redis.call('SET', schema, to)
  return { 'at', to }
end
return { 'at', present }
`,
);

/** The record's layout that this release writes. Neighbouring releases run side by side: each step must allow that. */
export const schemaNumber = 1;

/** One step of a migration, from a number to the next; repeating it changes nothing. */
export interface Migration {
  readonly from: number;
  readonly apply: (store: RecordStore) => Promise<void>;
}

const migrations: readonly Migration[] = [];

/**
 * Brings the record to this release's layout: an empty one begins there, an older one is moved one step at a time, a newer
 * one stops the start with a sentence.
 */
export async function prepareSchema(store: RecordStore, target = schemaNumber, steps = migrations): Promise<void> {
  let present = await stepTo(store, target, target);
  while (present < target) {
    const step = steps.find(({ from }) => from === present);
    if (!step) throw new Error(`The record has layout ${present}, and this release cannot move it to ${target}`);
    await step.apply(store);
    present = await stepTo(store, present, present + 1);
  }
  if (present > target) {
    throw new Error(
      `The record has layout ${present}, which is newer than this release knows (${target}): use a newer release`,
    );
  }
}

async function stepTo(store: RecordStore, from: number, to: number): Promise<number> {
  const reply = await run(store, migrateScript, { from, to });
  return Number(text(reply[1]));
}
