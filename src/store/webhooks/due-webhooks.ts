import { pairs, type RecordStore, run, script } from '../script.ts';

/** Webhooks that are brought forward at once. */
const pageSize = 500;

/**
 * Reads the webhooks whose next attempt may begin now and was due at `from` or later. A webhook that becomes due afterwards
 * has a time of at least the answered `now`. After the clock went back, one that would wait longer than any is due now.
 * Answers {'due', now, {member, time, …}}.
 */
const dueWebhooksScript = script('due-webhooks', 'light', ['webhooks'], ['from', 'limit', 'maxWait'])`
local latest = string.format('(%d', now + maxWait)
local late = redis.call('ZREVRANGEBYSCORE', webhooks, '+inf', latest, 'LIMIT', 0, ${pageSize})
if #late > 0 then
  local due = {}
  for n, member in ipairs(late) do due[2 * n - 1], due[2 * n] = now, member end
  redis.call('ZADD', webhooks, 'XX', unpack(due))
end
return { 'due', now, redis.call('ZRANGEBYSCORE', webhooks, from, now, 'WITHSCORES', 'LIMIT', 0, limit) }
`;

/** Wait of a webhook, with the lease of an attempt, after which the clock of Redis must have gone back. */
const maxWaitMs = 3_600_000;

export interface DueWebhook {
  readonly receiver: string;
  /** Id of the job or the batch. */
  readonly id: string;
}

export function memberOf({ receiver, id }: DueWebhook): string {
  return `${receiver}/${id}`;
}

/**
 * Returns webhooks whose next attempt may begin, earliest first; fewer than `limit` means that no other is due before `now`.
 * `maxWait`: milliseconds from an attempt to the next one, at most.
 */
export async function dueWebhooks(store: RecordStore, limit: number, from = 0, maxWait = maxWaitMs) {
  const [, now, flat] = await run(store, dueWebhooksScript, { from, limit, maxWait });
  const due = Object.entries(pairs(flat)).map(([member, at]) => {
    const cut = member.lastIndexOf('/');
    return { receiver: member.slice(0, cut), id: member.slice(cut + 1), at: Number(at) };
  });
  return { due, now: Number(now) };
}
