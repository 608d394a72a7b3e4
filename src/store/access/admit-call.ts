import type { Endpoint } from '../../model/job.ts';
import type { JobWebhook } from '../jobs/read-job.ts';
import { keys, shortId } from '../keys.ts';
import { fairShare, queueScore } from '../lua/fair-share.ts';
import { scoreOf } from '../lua/job-index.ts';
import { withRolledPeriod } from '../money/roll-period.ts';
import { askAgain, type RecordStore, run, type ScriptReply, script, text } from '../script.ts';
import {
  authorizeArgNames,
  authorizeLua,
  type Caller,
  type Rates,
  type RefusedCall,
  readRates,
  readRefused,
} from './authorize.ts';
import { admissionKeyNames, countedWindows, creditFields, creditRules, judgedArgNames } from './credit-rules.ts';

/** Lua that records a new job, of Lua for its key, its id and its texts. */
export function recordJob(job: string, id: string, asked: string, line: string, ip: string, receiver: string): string {
  return `redis.call('HSET', ${job}, 'id', ${id}, 'account', accountId, 'key', key_id, 'status', 'QueuedJob',
    'created_at', stamp, 'revision', '1', 'asked', ${asked}, 'line', ${line}, 'ip', ${ip}, 'receiver', ${receiver})`;
}

/** Lua behind the admission of jobs: an account that already waits (`waits`) has its turn, and the controller knows of it. */
export const tellOfWork = /* lua */ `if not waits then
    update_ready(accountId, tonumber(account_running), account_concurrency, account_tag, true, last_turn)
    redis.call('PUBLISH', workChannel, '')
  end`;

/**
 * Admits a call of a credit endpoint in the order of D10 and holds one credit, or refuses it and changes nothing but the rate
 * and the key's mark of use. A job is recorded and queued; a synchronous call gets a hold with a deadline. A call whose id was
 * admitted before is answered again, and changes nothing.
 * Answers {'admitted', id, '', rates, held}, {'repeated', id, stored answer, rates}, {'roll'} or a refusal.
 */
const admitScript = script(
  'admit-call',
  'needs memory',
  [...admissionKeyNames, 'calls', 'job'],
  [
    ...authorizeArgNames,
    ...judgedArgNames,
    'workChannel',
    'kind',
    'id',
    'holdMs',
    'shortId',
    'asked',
    'line',
    'ip',
    'receiver',
  ],
)`${authorizeLua(creditFields, true)}${fairShare}
local wanted = 1
${creditRules}
-- True for a call that was admitted before: its caller asks again, because the answer was lost.
local function is_known()
  if kind == 'job' then return redis.call('ZSCORE', jobs, shortId) end
  return redis.call('ZSCORE', calls, accountId .. '/' .. id)
end

local is_too_fast = check_rate()
local refused = is_too_fast or repeat_of() or refusal(kind == 'job' and 1 or 0)
if refused then
  if is_known() then return { 'admitted', id, '', rates, held } end
  if second and not is_too_fast then redis.call('HSET', account, 'rate', counted_rate()) end
  redis.call('HSET', key, 'last_used_at', stamp)
  return refused
end

-- A job that waits holds a credit.
local waits = kind == 'job' and held > 0 and redis.call('ZCARD', queue) > 0
local expires = string.format('%d', now + (kind == 'job' and keptMs or tonumber(holdMs)))
local is_new
if kind == 'job' then is_new = redis.call('ZADD', jobs, 'NX', ${scoreOf('now', 'QueuedJob')}, shortId)
else is_new = redis.call('ZADD', calls, 'NX', expires, accountId .. '/' .. id) end
if is_new == 0 then return { 'admitted', id, '', rates, held } end
undos[#undos + 1] = function()
  redis.pcall('HSET', account, 'held', account_held, 'rate', account_rate or '')
  redis.pcall('HSET', key, 'total', key_total, 'windows', key_windows or '')
  if repeatKey ~= '' then redis.pcall('DEL', repeats) end
  redis.pcall('ZREM', calls, accountId .. '/' .. id)
  if kind ~= 'job' then return end
  redis.pcall('DEL', job)
  redis.pcall('ZREM', jobs, shortId)
  redis.pcall('ZREM', openWork, id)
  redis.pcall('ZREM', queue, id)
  update_ready(accountId, tonumber(account_running), account_concurrency, account_tag)
end
redis.call('HSET', account, 'held', string.format('%d', held + 1), 'rate', counted_rate())
redis.call('HSET', key, 'total', string.format('%d', key_total + 1), 'last_used_at', stamp,
  'windows', ${countedWindows})
if repeatKey ~= '' then
  redis.call('HSET', repeats, 'request', request, 'id', id, 'until', expires, 'answer', kind == 'job' and '' or 'running')
  redis.call('PEXPIRE', repeats, keptMs)
end
if kind == 'job' then
  ${recordJob('job', 'id', 'asked', 'line', 'ip', 'receiver')}
  redis.call('ZADD', openWork, stamp, id)
  redis.call('ZADD', queue, ${queueScore.ofNew()}, id)
  ${tellOfWork}
end
return 'admitted' .. string.format(' %s  %s %d', id, rates, held + 1)
`;

/** An Idempotency-Key, hashed, and the text of the request it stands for. */
export interface Repeat {
  readonly key: string;
  readonly request: string;
  /** The same text signed with the other secret, while TRAWL_SECRET changes. */
  readonly otherwise?: string | null;
}

export interface NewJob {
  readonly endpoint: Endpoint;
  readonly method: string;
  readonly path: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly ip: string;
  readonly webhook: JobWebhook | null;
  /** `traceparent` of the request, where it is traced. */
  readonly trace?: string;
}

/** One call of a credit endpoint, and what is to be recorded when it is admitted. */
export interface CreditCall {
  readonly id: string;
  /** False when its parameters are wrong. */
  readonly valid: boolean;
  /** False while nothing new is admitted: Redis is nearly full, or may lose changes. */
  readonly isOpen: boolean;
  readonly repeat: Repeat | null;
  /** A job to queue, or for how many milliseconds a synchronous call may hold its credit. */
  readonly work: NewJob | { readonly holdMs: number };
}

export type Admission =
  | { readonly admitted: string; readonly held: number; readonly rates: Rates }
  | { readonly repeated: string; readonly answer: string; readonly rates: Rates }
  | RefusedCall;

/** Admits a call in one atomic step, or refuses it (D10). Its id makes it repeatable: a lost answer is asked for once more. */
export function admitCall(store: RecordStore, caller: Caller, call: CreditCall): Promise<Admission> {
  return askAgain(store, (asked) => admitOnce(asked, caller, call));
}

/** Admits a call as `admitCall` does, and asks nothing again. */
export async function admitOnce(store: RecordStore, caller: Caller, call: CreditCall): Promise<Admission> {
  const { id, work } = call;
  const reply = await withRolledPeriod(store, caller.accountId, () =>
    run(store, admitScript, {
      ...caller,
      ...judgedValues(caller, call),
      ...{ jobId: id, id, shortId: shortId(id) },
      ...workArgs(work),
    }),
  );
  return readAdmission(reply);
}

export function readAdmission(reply: ScriptReply): Admission {
  const [word, first, second, , held] = reply;
  if (word === 'admitted') return { admitted: text(first), held: Number(held), rates: readRates(reply) };
  if (word === 'repeated') return { repeated: text(first), answer: text(second), rates: readRates(reply) };
  const refused = readRefused(reply);
  if (!refused) throw new Error(`admit answered ${word}`);
  return refused;
}

/** Key of the stored answer to an Idempotency-Key. */
export function repeatKey(accountId: string, repeat: Repeat | null): string {
  return keys.repeat(accountId, repeat?.key ?? 'none');
}

/** Returns what `creditRules` judges by, and the key of the stored answer to an Idempotency-Key. */
export function judgedValues({ accountId }: Caller, call: Pick<CreditCall, 'valid' | 'isOpen' | 'repeat'>) {
  const { valid, isOpen, repeat } = call;
  return {
    ...{ repeats: repeatKey(accountId, repeat), valid, isOpen },
    ...{ repeatKey: repeat?.key, request: repeat?.request, otherwise: repeat?.otherwise },
  };
}

/** Arguments that depend on the kind of call. Scripts never read `asked`, so it is one JSON text. */
function workArgs(work: CreditCall['work']) {
  if ('holdMs' in work) return { kind: 'call', holdMs: work.holdMs, asked: '', line: '', ip: '', receiver: '' };
  const { method, path, ip } = work;
  return { kind: 'job', holdMs: '', line: `${method} ${path}`, ip, ...recordedTexts(work) };
}

/** Returns what the record keeps of a job as one JSON text, and the receiver of its webhook. */
export function recordedTexts({ endpoint, path, args, ip, webhook, trace }: NewJob) {
  const [webhook_url, authorization] = [webhook?.url ?? '', webhook?.authorization ?? ''];
  const asked = JSON.stringify({ endpoint, path, args, webhook_url, authorization, trace });
  const receiver = webhook?.receiver ?? '';
  // Redis would store a lone surrogate as another character.
  const texts = [asked, path, ip, receiver, webhook_url, authorization];
  if (!texts.every((text) => text.isWellFormed())) throw new Error('a job with half a character cannot be recorded');
  return { asked, receiver };
}
