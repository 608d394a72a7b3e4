import type { Job } from '../../model/job.ts';
import { shortId } from '../keys.ts';
import { balanceKeyNames, balances } from '../lua/balances.ts';
import { fairShare, fairShareKeyNames } from '../lua/fair-share.ts';
import { scoreOfStatus } from '../lua/job-index.ts';
import { dueWebhookKeyNames, makeWebhookDue, undoWebhookDue } from '../lua/make-webhook-due.ts';
import { statistics } from '../lua/statistics.ts';
import { type ScriptReply, text } from '../script.ts';
import { writeEnd } from './ended-job.ts';
import { fileScore } from './kept-files.ts';
import { openJobKeyNames, readOpenJob } from './read-open-job.ts';
import { workShift } from './work-ranges.ts';

export const endJobKeyNames = [
  ...openJobKeyNames,
  'jobs',
  'openWork',
  'ended',
  'paidLines',
  'lineStreams',
  ...dueWebhookKeyNames,
  'stats',
  ...balanceKeyNames,
  ...fairShareKeyNames.filter((key) => key !== 'account'),
] as const;
export const endJobArgNames = [
  'accountId',
  'jobId',
  'shortId',
  'mayUpload',
  'workChannel',
  'webhooksChannel',
  'jobChannel',
  'texts',
] as const;

/** Fields of a job that its end needs: none of them ever changes. */
export type EndingJob = Pick<
  Job,
  'id' | 'account' | 'key' | 'endpoint' | 'path' | 'args' | 'webhook_url' | 'webhook_authorization' | 'trace'
>;

/** Returns the values of these keys and arguments; `texts` of the job are deflated. */
export function endJobValues({ id, account, key, endpoint }: EndingJob, texts: Buffer) {
  const mayUpload = endpoint === 'metadata' ? '' : '1';
  return { accountId: account, jobId: id, shortId: shortId(id), keyId: key, endpoint, mayUpload, texts };
}

/**
 * Lua that finds `score`, that of the job in the open work, `queued_at`, that in the queue, and whether it has a slot. One with a stage and an
 * open attempt has a slot, and has had it about since it began. Of any other the open work tells, unless it has lost the job: its count of
 * attempts may be damaged.
 */
const findScores = /* lua */ `
  local score, queued_at, has_slot
  local is_open = not is_counted(j)
  if is_open and j.stage ~= '' then
    score, has_slot = string.format('%d', (j.started_at ~= '' and j.started_at or j.created_at) - ${workShift}), true
  else
    score = redis.call('ZSCORE', openWork, jobId)
    has_slot = score and tonumber(score) < 0 or not score and is_open
    queued_at = not has_slot and redis.call('ZSCORE', queue, jobId)
    is_open = is_open and has_slot
  end`;

/** Lua that undoes everything but the balances and the statistics, which undo themselves. */
const undoEnd = /* lua */ `
  undos[#undos + 1] = function()
    redis.pcall('DEL', endedJob)
    redis.pcall('ZREM', ended, shortId)
    redis.pcall('ZADD', jobs, ${scoreOfStatus('j.created_at', 'j.status')}, shortId)
    ${undoWebhookDue('j.receiver', 'jobId')}
    if line then redis.pcall('XDEL', paidLines, line) end
    if score then redis.pcall('ZADD', openWork, score, jobId) end
    if queued_at then redis.pcall('ZADD', queue, queued_at, jobId) end
    update_ready(accountId, tonumber(values[9]), b.concurrency, b.tag)
  end`;

/** Lua that takes the job out of the open work, and gives its slot to what waits. */
const leaveWork = /* lua */ `
  redis.call('ZREM', openWork, jobId)
  if queued_at then redis.call('ZREM', queue, jobId) end
  -- An account without a job that waits was not ready, as long as this one was not what waited. What waits holds a credit.
  local waits = b.held > 0 and redis.call('ZCARD', queue) > 0
  if waits or not has_slot then update_ready(accountId, b.running, b.concurrency, b.tag, waits) end`;

/** Lua of the attempts of the job, with the end of one that is open. */
const markAttempt = /* lua */ `
  local marks = j.attempts
  if is_open then
    local code = completed and 'completed' or e.code
    if e.reason ~= '' then marks = mark(j, j.attempt, code, '', e.reason) else marks = mark(j, j.attempt, code) end
  end`;

/** Lua of the words of an ended job that are not the fields of the open one. */
const endedWords: Readonly<Record<string, string>> = {
  status: 'e.status',
  revision: 'next_revision(j)',
  ended_at: 'at',
  progress: "(completed and '100' or tonumber(j.progress) or 0)",
  removed_at: "''",
  error_code: 'e.code',
};

/**
 * Lua of the end of a job, and the only place that writes a final status: charge or release of its hold, ledger, request-log
 * line, statistics and webhook, at once. Its hash gives way to one string.
 *
 * read_job() → nil, or the reply that refuses ({'not_found'}, {'already_ended'}). Afterwards `j` has its fields.
 * end_job(end) → the balance that was charged, or ''. end: status, code, log, is_delivered, reason.
 */
export const endJob = /* lua */ `${readOpenJob('account started_at progress storing_since line ip receiver preempted recorded stage stages')}${balances}${fairShare}${statistics}
local j

local function read_job()
  local fields, refused = read_open_job()
  if refused then return refused end
  if fields.account ~= accountId then return { 'not_found' } end
  j = fields
end

-- One function, because each call of the script pays for every function that it declares.
local function end_job(e)
  local took = math.max(0, now - tonumber(j.created_at))
  local at = string.format('%d', now)
  local completed = e.status == 'CompletedJob'
  ${findScores.trim()}
  if has_slot then set_field('running', b.running - 1) end
  local is_bound = j.preempted ~= '' or j.recorded ~= ''
  if is_bound then set_field('bound', math.max(0, (redis.call('HGET', account, 'bound') or 0) - 1)) end
  end_hold(completed)
  local balance = completed and draw(shortId) or ''
  local line
  ${undoEnd.trim()}
  write_balances()
  line = append(paidLines, lineStreams, at, 'endpoint', j.line, 'status', e.log, 'duration_ms', took, 'ip', j.ip,
    'credits', completed and '1' or '0')
  count_answer(e.log, took, j.started_at ~= '' and math.max(0, now - j.started_at) or nil)
  ${makeWebhookDue('j.receiver', 'jobId')}
  ${leaveWork.trim()}
  ${markAttempt.trim()}
  ${writeEnd((word) => endedWords[word] ?? `j.${word}`, 'marks', 'texts')}
  redis.call('ZADD', jobs, ${scoreOfStatus('j.created_at', 'e.status')}, shortId)
  -- The worker of a job that ends without a result may have uploaded something, too.
  local may_have_files = j.attempt ~= '0' and mayUpload ~= ''
  redis.call('ZADD', ended, may_have_files and ${fileScore('(e.is_delivered and at or 0)')} or at, shortId)
  -- The last write: it cannot be undone.
  redis.call('DEL', job)
  tell_watchers(j)
  -- A controller that settles a job stops its worker itself; that of a cancelled job must be told.
  if e.code == 'cancelled' then redis.call('PUBLISH', workChannel, jobId)
  elseif redis.call('EXISTS', ready) == 1 then redis.call('PUBLISH', workChannel, '') end
  return balance
end
`;

/**
 * Lua that ends a script with {'early', now} before `dueAt`, an argument that is '' where nothing ends for its age. A controller
 * knows TIME as of seconds ago: since then the clock of Redis may have gone back, and a new job would look a day old.
 */
export const refuseEarly = `if dueAt ~= '' and now < tonumber(dueAt) then return { 'early', now } end`;

/** Refusal of an end that is not due, with the time of the record at that moment. */
export interface Early {
  readonly done?: undefined;
  readonly refused: 'early';
  readonly now: number;
}

export function earlyOf([word, now]: ScriptReply): Early | null {
  return text(word) === 'early' ? { refused: 'early', now: Number(now) } : null;
}
