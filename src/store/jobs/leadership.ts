import { type RecordStore, run, script } from '../script.ts';

/** Takes or keeps the leadership for some milliseconds, or gives it up with 0. Answers {'leading'} or {'following'}. */
const leadScript = script(
  'lead',
  'always',
  ['lead'] as const,
  ['holder', 'milliseconds'] as const,
  /* lua */ `
local present = redis.call('GET', lead)
if present and present ~= holder then return { 'following' } end
if tonumber(milliseconds) <= 0 then
  redis.call('DEL', lead)
  return { 'following' }
end
redis.call('SET', lead, holder, 'PX', milliseconds)
return { 'leading' }
`,
);

/** Takes or keeps the leadership for some time; false while another holder has it. */
export async function takeLead(store: RecordStore, holder: string, leaseMs = 15_000): Promise<boolean> {
  const [word] = await run(store, leadScript, { holder, milliseconds: leaseMs });
  return word === 'leading';
}

export async function leaveLead(store: RecordStore, holder: string): Promise<void> {
  await run(store, leadScript, { holder, milliseconds: 0 });
}
