import { listAccounts } from '../accounts/read-accounts.ts';
import { listKeys } from '../accounts/read-keys.ts';
import { keys } from '../keys.ts';
import { type RecordStore, run, script } from '../script.ts';

const pageSize = 100;

/**
 * Removes up to 100 request-log lines that are older than `before` from the head of a stream. Answers {'trimmed', number of
 * removed lines}; after 100, more may be there.
 */
const trimScript = script(
  'trim',
  'always',
  ['lines'] as const,
  ['before'] as const,
  /* lua */ `
local old = {}
for _, line in ipairs(redis.call('XRANGE', lines, '-', '+', 'COUNT', ${pageSize})) do
  if line[2][1] ~= 'at' or tonumber(line[2][2]) >= tonumber(before) then break end
  old[#old + 1] = line[1]
end
if #old > 0 then redis.call('XDEL', lines, unpack(old)) end
return { 'trimmed', #old }
`,
);

async function trimLines(store: RecordStore, lines: string, before: number): Promise<number> {
  let done = 0;
  for (;;) {
    const [, removed] = await run(store, trimScript, { lines, before });
    done += Number(removed);
    if (Number(removed) < pageSize) return done;
  }
}

export async function sweepLines(store: RecordStore, before: number): Promise<number> {
  let done = 0;
  for (const [, account] of await listAccounts(store)) {
    for (const key of await listKeys(store, account)) {
      for (const lines of [keys.freeLines(key.id), keys.paidLines(key.id)])
        done += await trimLines(store, lines, before);
    }
  }
  return done;
}
