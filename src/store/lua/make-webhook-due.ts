export const dueWebhookKeyNames = ['webhooks', 'webhook', 'deliveries'] as const;

/** Lua that makes the webhook of an ended job or batch due `at`; the receiver is '' without one. It needs the arguments `shortId` and `webhooksChannel`. */
export function makeWebhookDue(receiver: string, id: string): string {
  return /* lua */ `
  if ${receiver} ~= '' then
    redis.call('HSET', webhook, 'state', 'due', 'attempts', 0, 'last_status', '', 'next_at', at, 'created_at', at)
    redis.call('ZADD', webhooks, at, ${receiver} .. '/' .. ${id})
    redis.call('ZADD', deliveries, at, shortId)
    redis.call('PUBLISH', webhooksChannel, '')
  end`.trim();
}

export function undoWebhookDue(receiver: string, id: string): string {
  return /* lua */ `
    if ${receiver} ~= '' then
      redis.pcall('DEL', webhook)
      redis.pcall('ZREM', webhooks, ${receiver} .. '/' .. ${id})
      redis.pcall('ZREM', deliveries, shortId)
    end`.trim();
}
