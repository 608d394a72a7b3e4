import { outboxKeyNames } from '../lua/outbox.ts';
import { type RecordStore, run, script } from '../script.ts';
import type { Mail } from './take-mail.ts';

/**
 * Ends one attempt of a mail: removed once it is done, else due again after a gap; notes who has it. An attempt whose lease
 * another one has taken over, or whose mail was replaced, changes nothing. Answers {'ended'} or {'stale'}.
 */
const endMailScript = script('end-mail', 'always', outboxKeyNames, ['id', 'at', 'attempt', 'gap', 'done'])`
local json = redis.call('HGET', outbox, id)
local mail = json and cjson.decode(json)
if not mail or mail.at ~= tonumber(at) or mail.attempts ~= tonumber(attempt) then return { 'stale' } end
local due = redis.call('ZSCORE', outboxDue, id)
undos[1] = function()
  redis.pcall('HSET', outbox, id, json)
  if due then redis.pcall('ZADD', outboxDue, due, id) end
end
if gap == '' then
  redis.call('ZREM', outboxDue, id)
  redis.call('HDEL', outbox, id)
else
  mail.done = done
  redis.call('HSET', outbox, id, cjson.encode(mail))
  redis.call('ZADD', outboxDue, now + tonumber(gap), id)
end
return { 'ended' }
`;

/** Ends one attempt; `gapMs` is `null` when nobody needs another one. `done`: addresses that need none. */
export async function endMail(
  store: RecordStore,
  mail: Pick<Mail, 'id' | 'at' | 'attempts'>,
  done: readonly string[],
  gapMs: number | null,
): Promise<void> {
  const { id, at, attempts: attempt } = mail;
  await run(store, endMailScript, { id, at, attempt, gap: gapMs ?? '', done: done.join(' ') });
}
