import { script } from '../script.ts';

/** Forgets a moved part of a stream, whose object is removed. Answers {'dropped'}. */
export const dropDays = script(
  'drop-days',
  'always',
  ['list', 'days'] as const,
  ['member', 'object'] as const,
  /* lua */ `
for _, json in ipairs(redis.call('LRANGE', list, 0, -1)) do
  if cjson.decode(json).object == object then redis.call('LREM', list, 1, json) end
end
redis.call('ZREM', days, member)
return { 'dropped' }
`,
);
