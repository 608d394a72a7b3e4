import { type RecordStore, run, script } from '../script.ts';

const windowMs = 15 * 60_000;
const maxSignIns = 10;

/**
 * Counts a sign-in with a password before the password is verified, so that guesses at the same moment count too.
 * Answers {'counted'} or {'refused', end of the window}.
 */
const countSignInScript = script(
  'count-sign-in',
  'needs memory',
  ['signInFailures'] as const,
  ['window', 'max'] as const,
  /* lua */ `
local count, ends = string.match(redis.call('GET', signInFailures) or '', '^(%d+) (%d+)$')
if not count or tonumber(ends) <= now then count, ends = 0, now + window end
if tonumber(count) >= tonumber(max) then return { 'refused', tonumber(ends) } end
redis.call('SET', signInFailures, string.format('%d %d', count + 1, ends), 'PX', window)
return { 'counted' }
`,
);

/** Takes the count of a sign-in back that has succeeded. Answers {'taken_back'}. */
const takeSignInBackScript = script(
  'take-sign-in-back',
  'always',
  ['signInFailures'] as const,
  [] as const,
  /* lua */ `
local count, ends = string.match(redis.call('GET', signInFailures) or '', '^(%d+) (%d+)$')
if count and tonumber(count) > 0 then
  redis.call('SET', signInFailures, string.format('%d %s', count - 1, ends), 'KEEPTTL')
end
return { 'taken_back' }
`,
);

/** Counts a sign-in as failed; returns the end of the window when 10 have failed in 15 minutes, else `null`. */
export async function countSignIn(store: RecordStore, personId: string): Promise<number | null> {
  const reply = await run(store, countSignInScript, { personId, window: windowMs, max: maxSignIns });
  return reply[0] === 'refused' ? Number(reply[1]) : null;
}

export async function takeSignInBack(store: RecordStore, personId: string): Promise<void> {
  await run(store, takeSignInBackScript, { personId });
}
