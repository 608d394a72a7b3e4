import { script } from '../script.ts';

/**
 * Removes up to 100 request-log lines that are older than a moment from the head of a stream.
 * Answers {'trimmed', how many}: 100 says that more may be there.
 */
export const trim = script(
  'trim',
  'always',
  ['lines'] as const,
  ['before'] as const,
  /* lua */ `
local old = {}
for _, line in ipairs(redis.call('XRANGE', lines, '-', '+', 'COUNT', 100)) do
  if line[2][1] ~= 'at' or tonumber(line[2][2]) >= tonumber(before) then break end
  old[#old + 1] = line[1]
end
if #old > 0 then redis.call('XDEL', lines, unpack(old)) end
return { 'trimmed', #old }
`,
);
