import type { JobWebhook } from '../jobs/read-job.ts';
import { keys, shortId } from '../keys.ts';
import { withRolledPeriod } from '../money/roll-period.ts';
import { askAgain, type RecordStore, run, type ScriptReply, script } from '../script.ts';
import { type Admission, type CreditCall, judgedValues, type NewJob, readAdmission } from './admit-call.ts';
import { authorizeArgNames, authorizeLua, type Caller, type Rates, readRates } from './authorize.ts';
import { admissionKeyNames, creditFields, judgedArgNames } from './credit-rules.ts';
import { jobRules, jobTexts, queueJobs } from './queue-jobs.ts';

const argNames = [
  ...authorizeArgNames,
  ...judgedArgNames,
  'workChannel',
  'batchId',
  'count',
  'isTrial',
  'shortIds',
  'url',
  'receiver',
  'authorization',
] as const;

/**
 * Admits all items of a batch and holds one credit for each, or refuses it and changes nothing but the mark of use of the key. The
 * rate was judged before. A batch that was admitted before is answered again, and changes nothing. A trial is judged like a batch
 * of one item and admits nothing.
 * Answers {'admitted', batch, '', rates, held}, {'repeated', batch, '', rates}, {'ready', '', '', rates} for a trial, {'roll'} or a refusal.
 */
const admitBatchScript = script(
  'admit-batch',
  'needs memory',
  [...admissionKeyNames, 'batch', 'openBatches'],
  argNames,
)`${authorizeLua(creditFields, true)}
local wanted = tonumber(count)
${jobRules}
if redis.call('EXISTS', batch) == 1 then return { 'admitted', batchId, '', rates, held } end
local refused = repeat_of() or refusal(wanted)
if refused then
  redis.call('HSET', key, 'last_used_at', stamp)
  return refused
end

if isTrial == '1' then return answer('ready') end

undos[#undos + 1] = function()
  if repeatKey ~= '' then redis.pcall('DEL', repeats) end
  redis.pcall('ZREM', openBatches, batchId)
  redis.pcall('DEL', batch)
end
if repeatKey ~= '' then
  redis.call('HSET', repeats, 'request', request, 'id', batchId, 'until', string.format('%d', now + keptMs), 'answer', '')
  redis.call('PEXPIRE', repeats, keptMs)
end
redis.call('HSET', batch, 'account', accountId, 'created_at', stamp, 'jobs', shortIds, 'url', url, 'receiver', receiver,
  'authorization', authorization)
redis.call('ZADD', openBatches, stamp, batchId)
${queueJobs(2 + argNames.length)}
return { 'admitted', batchId, '', rates, held + wanted }
`;

export interface NewBatch extends Omit<CreditCall, 'work'> {
  /** At least one. Of an invalid batch only their number counts. */
  readonly items: readonly { readonly jobId: string; readonly work: NewJob }[];
  /** Number of items that count against the quotas of the key. */
  readonly count: number;
  readonly webhook: JobWebhook | null;
}

/** Admits a batch in one atomic step. Its id makes it repeatable: a lost answer is asked for once more. */
export function admitBatch(store: RecordStore, caller: Caller, batch: NewBatch): Promise<Admission> {
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
): Promise<Admission | { readonly ready: true; readonly rates: Rates }> {
  const wanted = { ...batch, id: '-', valid: true, items: [], count: 1, webhook: null };
  const reply = await runAdmission(store, caller, wanted, true);
  return reply[0] === 'ready' ? { ready: true, rates: readRates(reply) } : readAdmission(reply);
}

function runAdmission(store: RecordStore, caller: Caller, batch: NewBatch, isTrial: boolean): Promise<ScriptReply> {
  const { id, items, count, webhook } = batch;
  const texts = items.flatMap(({ jobId, work }) => jobTexts(jobId, work));
  const values = {
    ...caller,
    ...judgedValues(caller, batch),
    ...{ batchId: id, count, isTrial },
    ...{ url: webhook?.url, receiver: webhook?.receiver, authorization: webhook?.authorization },
    shortIds: items.map(({ jobId }) => shortId(jobId)).join(''),
  };
  const jobKeys = items.map(({ jobId }) => keys.job(jobId));
  return withRolledPeriod(store, caller.accountId, () =>
    run(store, admitBatchScript, values, { moreArgs: texts, moreKeys: jobKeys }),
  );
}
