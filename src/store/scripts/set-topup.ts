import { script } from '../script.ts';

/** Changes the automatic top-up setting of an account. Answers {'set'} or {'not_found'}. */
export const setTopup = script(
  'set-topup',
  'needs room',
  ['account', 'topup'] as const,
  ['fields'] as const,
  /* lua */ `
if redis.call('EXISTS', account) == 0 then return { 'not_found' } end
for name, value in pairs(cjson.decode(fields)) do redis.call('HSET', topup, name, value) end
return { 'set' }
`,
);
