import type { JobWebhook } from '../jobs/read-job.ts';
import { keys, shortId } from '../keys.ts';
import { fairShare } from '../lua/fair-share.ts';
import { countOpenJobs, scoreOf } from '../lua/job-index.ts';
import { withRolledPeriod } from '../money/roll-period.ts';
import { askAgain, type RecordStore, run, type ScriptReply, script, text } from '../script.ts';
import { type NewJob, type Repeat, recordedTexts, repeatKey } from './admit-call.ts';
import {
  authorizeArgNames,
  authorizeLua,
  type Caller,
  type Rates,
  type RefusedCall,
  readRates,
  readRefused,
} from './authorize.ts';
import { admissionKeyNames, countedWindows, creditFields, creditRules } from './credit-rules.ts';

const argNames = [
  ...authorizeArgNames,
  'workChannel',
  'batchId',
  'count',
  'valid',
  'isOpen',
  'isTrial',
  'repeatKey',
  'request',
  'otherwise',
  'shortIds',
  'line',
  'ip',
  'url',
  'receiver',
  'authorization',
] as const;
/** Texts of each item behind the arguments with names: id and short id of its job, `asked` and receiver. */
const textsOfItem = 4;
/** Deadline and offset of the clock stand before the arguments with names. */
const firstItem = 2 + argNames.length;

/**
 * Admits all items of a batch and holds one credit for each, or refuses it and changes nothing but the mark of use of the key. The
 * rate was judged before. A batch that was admitted before is answered again, and changes nothing. A trial is judged like a batch
 * of one item and admits nothing.
 * Answers {'admitted', batch, '', rates, held}, {'repeated', batch, '', rates}, {'ready', '', '', rates} for a trial, {'roll'} or a refusal.
 */
const admitBatchScript = script(
  'admit-batch',
  'needs memory',
  [...admissionKeyNames, 'batch', 'openBatches'] as const,
  argNames,
  /* lua */ `${authorizeLua(creditFields, true)}${fairShare}
local wanted = tonumber(count)
${creditRules}
local function refusal()
  if account_suspended == '1' then return answer('forbidden') end
  local over_quota = quota_refusal()
  if over_quota then return over_quota end
  if valid ~= '1' then return answer('bad_request') end
  if account_invoice ~= 'paid' or credits_left() < wanted then return answer('payment_required') end
  if ${countOpenJobs} + wanted > tonumber(account_max_open) then return answer('rate_limited', 'open-jobs') end
  if is_draining() then return answer('draining') end
  if isOpen ~= '1' then return answer('unavailable') end
end

if redis.call('EXISTS', batch) == 1 then return { 'admitted', batchId, '', rates, held } end
local refused = repeat_of() or refusal()
if refused then
  redis.call('HSET', key, 'last_used_at', stamp)
  return refused
end

if isTrial == '1' then return answer('ready') end

local firstKey = #KEYS - wanted
local waits = held > 0 and redis.call('ZCARD', queue) > 0
undos[#undos + 1] = function()
  redis.pcall('HSET', account, 'held', account_held)
  redis.pcall('HSET', key, 'total', key_total, 'windows', key_windows or '')
  if repeatKey ~= '' then redis.pcall('DEL', repeats) end
  redis.pcall('ZREM', openBatches, batchId)
  redis.pcall('DEL', batch)
  for n = 1, wanted do
    local at = ${firstItem} + (n - 1) * ${textsOfItem}
    redis.pcall('DEL', KEYS[firstKey + n])
    redis.pcall('ZREM', jobs, ARGV[at + 2])
    redis.pcall('ZREM', openWork, ARGV[at + 1])
    redis.pcall('ZREM', queue, ARGV[at + 1])
  end
  update_ready(accountId, tonumber(account_running), account_concurrency, account_tag)
end
redis.call('HSET', account, 'held', string.format('%d', held + wanted))
redis.call('HSET', key, 'total', string.format('%d', key_total + wanted), 'last_used_at', stamp,
  'windows', ${countedWindows})
if repeatKey ~= '' then
  redis.call('HSET', repeats, 'request', request, 'id', batchId, 'until', string.format('%d', now + keptMs), 'answer', '')
  redis.call('PEXPIRE', repeats, keptMs)
end
redis.call('HSET', batch, 'account', accountId, 'created_at', stamp, 'jobs', shortIds, 'url', url, 'receiver', receiver,
  'authorization', authorization)
redis.call('ZADD', openBatches, stamp, batchId)
local score = ${scoreOf('now', 'QueuedJob')}
for n = 1, wanted do
  local at = ${firstItem} + (n - 1) * ${textsOfItem}
  local id = ARGV[at + 1]
  redis.call('HSET', KEYS[firstKey + n], 'id', id, 'account', accountId, 'key', key_id, 'status', 'QueuedJob',
    'created_at', stamp, 'revision', '1', 'asked', ARGV[at + 3], 'line', line, 'ip', ip, 'receiver', ARGV[at + 4])
  redis.call('ZADD', jobs, score, ARGV[at + 2])
  redis.call('ZADD', openWork, stamp, id)
  -- A microsecond apart, so that jobs start in the order of their items.
  redis.call('ZADD', queue, string.format('%d', now * 1000 + clock[2] % 1000 + n - 1), id)
end
if not waits then
  update_ready(accountId, tonumber(account_running), account_concurrency, account_tag, true, last_turn)
  redis.call('PUBLISH', workChannel, '')
end
return { 'admitted', batchId, '', rates, held + wanted }
`,
);

/** A batch as the record takes it over. */
export interface NewBatch {
  readonly id: string;
  /** False when its parameters are wrong. */
  readonly valid: boolean;
  /** False while nothing new is admitted. */
  readonly isOpen: boolean;
  readonly repeat: Repeat | null;
  /** At least one; all have the same method, path and address. Of an invalid batch only their number counts. */
  readonly items: readonly { readonly jobId: string; readonly work: NewJob }[];
  /** Number of items that count against the quotas of the key. */
  readonly count: number;
  readonly webhook: JobWebhook | null;
}

type BatchAdmission =
  | { readonly admitted: string; readonly held: number; readonly rates: Rates }
  | { readonly repeated: string; readonly rates: Rates }
  | RefusedCall;

/** Admits a batch in one atomic step. Its id makes it repeatable: a lost answer is asked for once more. */
export function admitBatch(store: RecordStore, caller: Caller, batch: NewBatch): Promise<BatchAdmission> {
  return askAgain(store, async (asked) => readAdmission(await runAdmission(asked, caller, batch, false)));
}

/**
 * Judges a batch whose items are not known yet, as one of a single item: refused, repeated, or `ready` to find its items. So nobody
 * has a playlist read without a credit, or again for a call that is repeated.
 */
export async function tryBatch(
  store: RecordStore,
  caller: Caller,
  batch: Pick<NewBatch, 'isOpen' | 'repeat'>,
): Promise<BatchAdmission | { readonly ready: true; readonly rates: Rates }> {
  const wanted = { ...batch, id: '-', valid: true, items: [], count: 1, webhook: null };
  const reply = await runAdmission(store, caller, wanted, true);
  return reply[0] === 'ready' ? { ready: true, rates: readRates(reply) } : readAdmission(reply);
}

function runAdmission(store: RecordStore, caller: Caller, batch: NewBatch, isTrial: boolean): Promise<ScriptReply> {
  const { id, valid, isOpen, repeat, items, count, webhook } = batch;
  const first = items[0]?.work;
  const texts = items.flatMap(({ jobId, work }) => {
    const { asked, receiver } = recordedTexts(work);
    return [jobId, shortId(jobId), asked, receiver];
  });
  const values = {
    ...caller,
    repeats: repeatKey(caller.accountId, repeat),
    batchId: id,
    count,
    valid: valid ? '1' : '',
    isOpen: isOpen ? '1' : '',
    isTrial: isTrial ? '1' : '',
    repeatKey: repeat?.key ?? '',
    request: repeat?.request ?? '',
    otherwise: repeat?.otherwise ?? '',
    shortIds: items.map(({ jobId }) => shortId(jobId)).join(''),
    line: first ? `POST ${first.path}` : '',
    ip: first?.ip ?? '',
    url: webhook?.url ?? '',
    receiver: webhook?.receiver ?? '',
    authorization: webhook?.authorization ?? '',
  };
  const jobKeys = items.map(({ jobId }) => keys.job(jobId));
  return withRolledPeriod(store, caller.accountId, () => run(store, admitBatchScript, values, texts, false, jobKeys));
}

function readAdmission(reply: ScriptReply): BatchAdmission {
  const [word, given, , , held] = reply;
  if (word === 'admitted') return { admitted: text(given), held: Number(held), rates: readRates(reply) };
  if (word === 'repeated') return { repeated: text(given), rates: readRates(reply) };
  const refused = readRefused(reply);
  if (!refused) throw new Error(`admit-batch answered ${word}`);
  return refused;
}
