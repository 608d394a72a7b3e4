import { type RecordStore, run, script } from '../script.ts';

/** Takes a person's role in an account away. Answers {'removed'} or {'not_found'}. */
const removePersonScript = script(
  'remove-person',
  'always',
  ['people', 'memberships'] as const,
  ['accountId', 'email'] as const,
  /* lua */ `
local role = redis.call('HGET', people, email)
if not role then return { 'not_found' } end
local accounts = redis.call('HGET', memberships, email) or ''
local left = {}
for id in string.gmatch(accounts, '%S+') do if id ~= accountId then left[#left + 1] = id end end
undos[1] = function()
  redis.pcall('HSET', memberships, email, accounts)
  redis.pcall('HSET', people, email, role)
end
if #left > 0 then redis.call('HSET', memberships, email, table.concat(left, ' ')) else redis.call('HDEL', memberships, email) end
redis.call('HDEL', people, email)
return { 'removed' }
`,
);

/** Returns false when the account has no such person. */
export async function removePerson(store: RecordStore, accountId: string, email: string): Promise<boolean> {
  const [word] = await run(store, removePersonScript, { accountId, email });
  return word === 'removed';
}
