import { noteArgNames, noteChange, noteKeyNames, noteOf, requireNoted } from '../audit/note-change.ts';
import { keys } from '../keys.ts';
import { pairs, type RecordStore, run, script } from '../script.ts';
import { watchCard } from './card-expiry.ts';

/** Answers {'set'} or {'not_found'}. */
const setTopupScript = script(
  'set-topup',
  'needs memory',
  ['account', 'topup', 'expiringCards', ...noteKeyNames] as const,
  ['accountId', 'fields', ...noteArgNames] as const,
  /* lua */ `${noteChange}${watchCard}
if redis.call('EXISTS', account) == 0 then return { 'not_found' } end
if note_change() then return { 'audit_full' } end
local chosen = cjson.decode(fields)
if chosen.payment_method then watch_card(chosen.payment_method) end
for name, value in pairs(chosen) do redis.call('HSET', topup, name, value) end
redis.call('HSET', account, 'topup', redis.call('HGET', topup, 'enabled') == '1' and '1' or '')
return { 'set' }
`,
);

/** Every value is text, '' for none. */
export async function setTopup(
  store: RecordStore,
  accountId: string,
  fields: Readonly<Record<string, string>>,
): Promise<void> {
  const noted = noteOf(store, accountId, { action: 'topup.change', target: '', change: fields });
  requireNoted(await run(store, setTopupScript, { accountId, fields: JSON.stringify(fields), ...noted }));
}

/** Returns the fields of an account's top-up setting and of its purchase. */
export async function readTopup(store: RecordStore, accountId: string): Promise<Record<string, string>> {
  return pairs(await store.connection.read(['HGETALL', keys.topup(accountId)]));
}
