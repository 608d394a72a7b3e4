import { keys } from '../keys.ts';
import { pairs, type RecordStore, run, script } from '../script.ts';

/**
 * Reads the webhooks whose next attempt may begin now, from a time on. Whatever becomes due later has a time that is not
 * before the answered one. Answers {'due', now, {member, time, …}}.
 */
const dueWebhooksScript = script(
  'due-webhooks',
  'always',
  ['webhooks'] as const,
  ['from', 'limit'] as const,
  /* lua */ `
return { 'due', now, redis.call('ZRANGEBYSCORE', webhooks, from, now, 'WITHSCORES', 'LIMIT', 0, limit) }
`,
);

/** A webhook that waits for its delivery: its receiver and its job. */
export interface DueWebhook {
  readonly receiver: string;
  readonly jobId: string;
}

/** Webhooks whose next attempt may begin, earliest first, and the time up to which there are no others if these are fewer than the limit. */
export async function dueWebhooks(
  store: RecordStore,
  limit: number,
  from = 0,
): Promise<{ due: (DueWebhook & { at: number })[]; now: number }> {
  const [, now, flat] = await run(store, dueWebhooksScript, { webhooks: keys.webhooks }, { from, limit });
  const due = Object.entries(pairs(flat)).map(([member, at]) => {
    const cut = member.lastIndexOf('/');
    return { receiver: member.slice(0, cut), jobId: member.slice(cut + 1), at: Number(at) };
  });
  return { due, now: Number(now) };
}
