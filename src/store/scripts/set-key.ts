import { script } from '../script.ts';

/** Changes fields of a key; they hold for the next request. Answers {'set'} or {'not_found'}. */
export const setKey = script(
  'set-key',
  'always',
  ['keyring', 'key'] as const,
  ['alias', 'hash', 'fields'] as const,
  /* lua */ `
if redis.call('HGET', keyring, alias) ~= hash then return { 'not_found' } end
for name, value in pairs(cjson.decode(fields)) do redis.call('HSET', key, name, value) end
return { 'set' }
`,
);
