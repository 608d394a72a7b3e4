import { script } from '../script.ts';

const fields = ['at', 'endpoint', 'status', 'duration_ms', 'ip', 'credits'] as const;

/**
 * Writes lines of the request log of one key and keeps about as many as `cap`. The lines stand behind the arguments, each
 * as the values of `lineFields`. Answers {'written'}.
 */
export const writeLines = script(
  'write-lines',
  'needs room',
  ['lines'] as const,
  ['cap'] as const,
  /* lua */ `
for n = 3, #ARGV, ${fields.length} do
  redis.call('XADD', lines, 'MAXLEN', '~', cap, '*', ${fields.map((name, n) => `'${name}', ARGV[n + ${n}]`).join(', ')})
end
return { 'written' }
`,
);

/** What a line consists of, in its order. */
export const lineFields = fields;
