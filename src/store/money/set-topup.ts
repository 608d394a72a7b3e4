import { noteArgNames, noteChange, noteKeyNames, noteOf, requireNoted } from '../audit/note-change.ts';
import { keys } from '../keys.ts';
import { pairs, type RecordStore, run, script } from '../script.ts';
import { watchCard } from './card-expiry.ts';

/**
 * Changes the setting. A card that an event of the provider tells of, at `eventAt`, counts only if no such event as new did before:
 * events may come again and in any order. Answers {'set'}, {'stale'}, {'audit_full'} or {'not_found'}.
 */
const setTopupScript = script(
  'set-topup',
  'needs memory',
  ['account', 'topup', 'expiringCards', ...noteKeyNames] as const,
  ['accountId', 'fields', 'eventAt', ...noteArgNames] as const,
  /* lua */ `${noteChange}${watchCard}
if redis.call('EXISTS', account) == 0 then return { 'not_found' } end
local newest = tonumber(redis.call('HGET', topup, 'card_event_at') or '')
if eventAt ~= '' and newest and newest >= tonumber(eventAt) then return { 'stale' } end
if note_change() then return { 'audit_full' } end
local chosen = cjson.decode(fields)
if chosen.payment_method then watch_card(chosen.payment_method) end
for name, value in pairs(chosen) do redis.call('HSET', topup, name, value) end
redis.call('HSET', account, 'topup', redis.call('HGET', topup, 'enabled') == '1' and '1' or '')
if eventAt ~= '' then redis.call('HSET', topup, 'card_event_at', eventAt) end
return { 'set' }
`,
);

/** Every value is text, '' for none. `eventAt`: when the provider stored the card that the fields name. */
export async function setTopup(
  store: RecordStore,
  accountId: string,
  fields: Readonly<Record<string, string>>,
  eventAt: number | '' = '',
): Promise<void> {
  const noted = noteOf(store, accountId, { action: 'topup.change', target: '', change: fields });
  requireNoted(await run(store, setTopupScript, { accountId, fields: JSON.stringify(fields), eventAt, ...noted }));
}

/** Returns the fields of an account's top-up setting and of its purchase. */
export async function readTopup(store: RecordStore, accountId: string): Promise<Record<string, string>> {
  return pairs(await store.connection.read(['HGETALL', keys.topup(accountId)]));
}
