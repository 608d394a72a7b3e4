import { keys } from './keys.ts';
import { run, type Store } from './script.ts';
import { lead } from './scripts/lead.ts';

const leadMilliseconds = 15_000;

/** Takes or keeps the leadership for 15 s; false while another holder has it. */
export async function takeLead(store: Store, holder: string): Promise<boolean> {
  const [word] = await run(store, lead, { lead: keys.lead }, { holder, milliseconds: leadMilliseconds });
  return word === 'leading';
}

/** Gives the leadership up, if this holder has it. */
export async function leaveLead(store: Store, holder: string): Promise<void> {
  await run(store, lead, { lead: keys.lead }, { holder, milliseconds: 0 });
}
