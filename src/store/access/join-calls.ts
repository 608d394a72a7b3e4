// Gain: with 100 keys, the first with a fifth of all calls, an admission takes 0.64 to 0.80 of its CPU one by one, with one key 0.28 (`make bench BENCH=record`).

import { refuse } from '../../base/errors.ts';
import { keys } from '../keys.ts';
import { withRolledPeriod } from '../money/roll-period.ts';
import { askAgain, type RecordStore, run, script, text } from '../script.ts';
import { type Admission, admitCall, admitOnce, type CreditCall, type NewJob } from './admit-call.ts';
import { authorizeArgNames, authorizeKeyNames, authorizeLua, type Caller, type Rates, readRates } from './authorize.ts';
import { admissionKeyNames, creditFields } from './credit-rules.ts';
import { findJob, type PolledJob, pollJob, positionFields, readFound, sharedPosition } from './poll-job.ts';
import { jobRules, jobTexts, queueJobs, textsOfJob } from './queue-jobs.ts';

/** Redis answers nobody else while a script runs. */
const maxJoined = 64;

/**
 * Makes several calls of one key in one step, and returns what reads the result of each; `null` when it made none of them, and
 * each is to be made alone.
 */
type JoinedStep<C, R> = (
  store: RecordStore,
  caller: Caller,
  calls: readonly C[],
) => Promise<readonly (() => R)[] | null>;
type SingleStep<C, R> = (store: RecordStore, caller: Caller, call: C) => Promise<R>;

/** Calls of one key in one turn of the event loop. */
interface JoinedCalls<C, R> {
  readonly calls: C[];
  /** Absent until the turn has ended. */
  results?: ReturnType<JoinedStep<C, R>>;
}

interface LoopTurn<C, R> {
  readonly groups: Map<string, JoinedCalls<C, R>>;
  /** Resolves once the event loop has handled everything that had arrived. */
  readonly ended: Promise<void>;
}

/**
 * Joins the calls that one key makes in the same turn of the event loop: each step has a price, here and in Redis, before it
 * does anything. The joined step takes all of them or none, so it needs no order of checks for each. A call that is the only
 * one is made alone.
 */
function joinCalls<C, R>(joined: JoinedStep<C, R>, single: SingleStep<C, R>): SingleStep<C, R> {
  const turns = new WeakMap<RecordStore, LoopTurn<C, R>>();
  const beginTurn = (store: RecordStore): LoopTurn<C, R> => {
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    setImmediate(() => {
      turns.delete(store);
      resolve();
    });
    const turn = { groups: new Map<string, JoinedCalls<C, R>>(), ended };
    turns.set(store, turn);
    return turn;
  };
  return async (store, caller, call) => {
    const { groups, ended } = turns.get(store) ?? beginTurn(store);
    const name = caller.accountId + caller.hash;
    const open = groups.get(name);
    const group: JoinedCalls<C, R> = open && open.calls.length < maxJoined ? open : { calls: [] };
    groups.set(name, group);
    const index = group.calls.push(call) - 1;
    await ended;
    if (group.calls.length === 1) return single(store, caller, call);
    const began = performance.now();
    group.results ??= joined(store, caller, group.calls);
    const results = await group.results;
    if (results) return results[index]!();
    // Both steps have the time of one call.
    const withinMs = (store.withinMs ?? store.connection.timeoutMs) - (performance.now() - began);
    if (withinMs <= 0) throw refuse('unavailable');
    return single({ ...store, withinMs }, caller, call);
  };
}

/** Returns the rates after a call, from those after the last of so many calls behind it. */
function ratesAfter({ perSecond, perMinute }: Rates, callsBehind: number): Rates {
  return {
    perSecond: perSecond && { ...perSecond, left: perSecond.left + callsBehind },
    perMinute: perMinute && { ...perMinute, left: perMinute.left + callsBehind },
  };
}

const admitArgNames = [...authorizeArgNames, 'workChannel', 'count'] as const;
const firstText = 2 + admitArgNames.length;

/**
 * Admits several jobs of one key as single calls, all or none. They have no Idempotency-Key, and their parameters are right.
 * Answers {'admitted', '', '', rates after the last one, held}, {'apart'} when one of them would be refused or was admitted
 * before, {'roll'} or a refusal.
 */
const admitJoinedScript = script(
  'admit-joined',
  'needs memory',
  admissionKeyNames,
  admitArgNames,
)`${authorizeLua(creditFields, true)}
local wanted = tonumber(count)
-- What a single call is judged by is the same for each of these, so it is no argument.
local valid, isOpen, repeatKey, request, otherwise = '1', '1', '', '', ''
${jobRules}
-- A command that was given up with its connection may arrive late, when its jobs were admitted one by one.
local function knows_one()
  for n = 1, wanted do
    if redis.call('ZSCORE', jobs, ARGV[${firstText} + (n - 1) * ${textsOfJob} + 2]) then return true end
  end
end

if check_rate(wanted) or refusal(wanted) or knows_one() then return { 'apart' } end
${queueJobs(firstText)}
return 'admitted' .. string.format('   %s %d', rates, held + wanted)
`;

type JobCall = CreditCall & { readonly work: NewJob };

const joinAdmissions = joinCalls<JobCall, Admission>(async (store, caller, calls) => {
  const texts = textsOfAll(calls);
  if (!texts) return null;
  const values = { ...caller, repeats: keys.repeat(caller.accountId, 'none'), count: calls.length };
  const jobKeys = calls.map(({ id }) => keys.job(id));
  const reply = await withRolledPeriod(store, caller.accountId, () =>
    run(store, admitJoinedScript, values, { moreArgs: texts, moreKeys: jobKeys }),
  );
  if (reply[0] !== 'admitted') return null;
  const [rates, held] = [readRates(reply), Number(reply[4])];
  return calls.map(({ id }, n) => {
    const behind = calls.length - 1 - n;
    return () => ({ admitted: id, held: held - behind, rates: ratesAfter(rates, behind) });
  });
}, admitOnce);

/** Returns the texts of all jobs, or `null` when one cannot be recorded: made alone, it fails alone. */
function textsOfAll(calls: readonly JobCall[]): string[] | null {
  try {
    return calls.flatMap(({ id, work }) => jobTexts(id, work));
  } catch {
    return null;
  }
}

/** Admits a call like `admitCall`, joined with others of its key. */
export async function admitJoined(store: RecordStore, caller: Caller, call: CreditCall): Promise<Admission> {
  const { valid, isOpen, repeat, work } = call;
  if (!valid || !isOpen || repeat !== null || 'holdMs' in work) return admitCall(store, caller, call);
  // A call that is asked for again has a store of its own, so it is made alone: `admitOnce` knows the jobs that were admitted.
  return askAgain(store, (asked) => joinAdmissions(asked, caller, { ...call, work }));
}

/**
 * Authorizes several polls of one key and reads their jobs, whose ids stand behind the arguments with names and whose keys at the
 * end of KEYS, two each. Answers {'entered', '', '', rates after the last one, `sharedPosition`, then for each job what `find_job`
 * returned or ''}, {'apart'} when one would be refused, or a refusal.
 */
const pollJoinedScript = script(
  'poll-joined',
  'light',
  [...authorizeKeyNames, 'queue'],
  authorizeArgNames,
)`${authorizeLua({ account: positionFields })}${findJob}
local firstId = ${2 + authorizeArgNames.length}
local polls = #ARGV - firstId
local firstKey = #KEYS - 2 * polls
if check_rate(polls) or account_suspended == '1' then return { 'apart' } end
redis.call('HSET', key, 'last_used_at', stamp)
if second then redis.call('HSET', account, 'rate', counted_rate(polls)) end
local reply = { 'entered', '', '', rates, ${sharedPosition} }
for n = 1, polls do
  local found, position = find_job(KEYS[firstKey + 2 * n - 1], KEYS[firstKey + 2 * n], ARGV[firstId + n])
  reply[4 + 2 * n], reply[5 + 2 * n] = found or '', position or ''
end
return reply
`;

/** Polls a job like `pollJob`, joined with other polls of the same key. */
export const pollJoined = joinCalls<string, PolledJob>(async (store, caller, jobIds) => {
  const jobKeys = jobIds.flatMap((jobId) => [keys.job(jobId), keys.endedJob(jobId)]);
  const reply = await run(store, pollJoinedScript, caller, { moreArgs: jobIds, moreKeys: jobKeys, asBytes: true });
  if (text(reply[0]) !== 'entered') return null;
  const [rates, shared] = [readRates(reply), reply[4]];
  // A job that cannot be read fails its own poll alone.
  return jobIds.map((jobId, n) => () => {
    const [found, position] = reply.slice(5 + 2 * n, 7 + 2 * n);
    const ratesHere = ratesAfter(rates, jobIds.length - 1 - n);
    if (text(found) === '') return { refused: 'not_found', detail: '', retryAfterSeconds: null, rates: ratesHere };
    return { ...readFound(jobId, [found, position, shared]), rates: ratesHere };
  });
}, pollJob);
