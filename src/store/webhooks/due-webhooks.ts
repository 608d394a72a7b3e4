import { pairs, type RecordStore, run, script } from '../script.ts';

/**
 * Reads the webhooks whose next attempt may begin now and was due at `from` or later. A webhook that becomes due afterwards
 * has a time of at least the answered `now`. Answers {'due', now, {member, time, …}}.
 */
const dueWebhooksScript = script(
  'due-webhooks',
  'light',
  ['webhooks'] as const,
  ['from', 'limit'] as const,
  /* lua */ `
return { 'due', now, redis.call('ZRANGEBYSCORE', webhooks, from, now, 'WITHSCORES', 'LIMIT', 0, limit) }
`,
);

export interface DueWebhook {
  readonly receiver: string;
  readonly jobId: string;
}

/** Returns webhooks whose next attempt may begin, earliest first; fewer than `limit` means that no other is due before `now`. */
export async function dueWebhooks(
  store: RecordStore,
  limit: number,
  from = 0,
): Promise<{ due: (DueWebhook & { at: number })[]; now: number }> {
  const [, now, flat] = await run(store, dueWebhooksScript, { from, limit });
  const due = Object.entries(pairs(flat)).map(([member, at]) => {
    const cut = member.lastIndexOf('/');
    return { receiver: member.slice(0, cut), jobId: member.slice(cut + 1), at: Number(at) };
  });
  return { due, now: Number(now) };
}
