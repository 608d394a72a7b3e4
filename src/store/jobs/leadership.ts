import { keys } from '../keys.ts';
import { type RecordStore, run } from '../script.ts';
import { lead } from '../scripts/lead.ts';

/** Takes or keeps the leadership for some time; false while another holder has it. */
export async function takeLead(store: RecordStore, holder: string, milliseconds = 15_000): Promise<boolean> {
  const [word] = await run(store, lead, { lead: keys.lead }, { holder, milliseconds });
  return word === 'leading';
}

/** Gives the leadership up, if this holder has it. */
export async function leaveLead(store: RecordStore, holder: string): Promise<void> {
  await run(store, lead, { lead: keys.lead }, { holder, milliseconds: 0 });
}
