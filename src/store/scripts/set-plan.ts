import { script } from '../script.ts';

/** Makes or changes a plan; it holds for the next request of every account that has it. Answers {'set'}. */
export const setPlan = script(
  'set-plan',
  'needs room',
  ['plans'] as const,
  ['plan', 'json'] as const,
  /* lua */ `
redis.call('HSET', plans, plan, json)
return { 'set' }
`,
);
