import { fairShare, fairShareKeyNames } from '../lua/fair-share.ts';
import { type RecordStore, run, script } from '../script.ts';

/**
 * Lets an account with waiting jobs stand for its turn again, where it gave that up because its jobs that cannot be interrupted
 * were as many as the workers. Changes nothing for one that stands there. Answers {'offered'} or {'not_found'}.
 */
const offerTurnsScript = script('offer-turns', 'light', fairShareKeyNames, ['accountId'])`${fairShare}
local owner = redis.call('HMGET', account, 'running', 'concurrency', 'tag')
if not owner[1] then return { 'not_found' } end
update_ready(accountId, tonumber(owner[1]), owner[2], owner[3])
return { 'offered' }
`;

/** Offers accounts a turn whose jobs wait for a worker: there may be more workers now, and no event of their own tells of that. */
export async function offerTurns(store: RecordStore, accountIds: Iterable<string>): Promise<void> {
  for (const accountId of accountIds) await run(store, offerTurnsScript, { accountId });
}
