import { script } from '../script.ts';

/**
 * Reads the webhooks whose next attempt may begin now, from a time on. Whatever becomes due later has a time that is not
 * before the answered one. Answers {'due', now, {member, time, …}}.
 */
export const dueWebhooks = script(
  'due-webhooks',
  'always',
  ['webhooks'] as const,
  ['from', 'limit'] as const,
  /* lua */ `
return { 'due', now, redis.call('ZRANGEBYSCORE', webhooks, from, now, 'WITHSCORES', 'LIMIT', 0, limit) }
`,
);
