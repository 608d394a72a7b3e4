import { type RecordStore, run, script } from '../script.ts';

const readCount = /* lua */ `
local count, ends = string.match(redis.call('GET', signInFailures) or '', '^(%d+) (%d+)$')
if not count or tonumber(ends) <= now then count, ends = 0, nil end
`;

/** Counts a sign-in of a person in a window that begins with the first. Answers {'counted', how many, ms until the window ends}. */
const countSignInScript = script('count-sign-in', 'needs memory', ['signInFailures'], ['window'])`${readCount}
-- A window that ends later than one that begins now is of a time before the clock went back.
if not ends or ends - now > tonumber(window) then count, ends = 0, now + window end
redis.call('SET', signInFailures, string.format('%d %d', count + 1, ends), 'PX', window)
return { 'counted', count + 1, ends - now }
`;

/** Takes a sign-in back that did not fail. Answers {'taken_back'}. */
const takeSignInBackScript = script('take-sign-in-back', 'always', ['signInFailures'], [])`${readCount}
local left = count - 1
if not ends or left <= 0 then redis.call('DEL', signInFailures)
else redis.call('SET', signInFailures, string.format('%d %d', left, ends), 'KEEPTTL') end
return { 'taken_back' }
`;

/** Counts a sign-in; returns how many there are in its window, and how long that still lasts. */
export async function countSignIn(store: RecordStore, personId: string, windowMs: number) {
  const [, count, leftMs] = await run(store, countSignInScript, { personId, window: windowMs });
  return { count: Number(count), leftMs: Number(leftMs) };
}

export async function takeSignInBack(store: RecordStore, personId: string): Promise<void> {
  await run(store, takeSignInBackScript, { personId });
}
