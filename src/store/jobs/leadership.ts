import { keys } from '../keys.ts';
import type { Connection } from '../redis/connection.ts';
import { type RecordStore, run, script, text } from '../script.ts';

/**
 * Keeps the leadership of a term for some milliseconds, or begins a new term when nobody leads; with 0 it is given up. A
 * leader whose clock is off loses it to a controller whose clock is not, and any leader to one that seizes it. Answers {'leading', term}
 * or {'following'}.
 */
const leadershipScript = script(
  'leadership',
  'light',
  ['lead', 'terms'],
  ['holder', 'term', 'milliseconds', 'isOff', 'seizes'],
)`
local present = redis.call('GET', lead)
local lasts = tonumber(milliseconds)
if present == term and lasts <= 0 then redis.call('DEL', lead) end
if lasts <= 0 then return { 'following' } end
if present ~= term then
  local yields = redis.call('HGET', terms, 'off') == '1' and isOff == '0'
  -- The clock of Redis went back since: the lease of a controller that died would last for as long as that.
  local is_stale = redis.call('PTTL', lead) > 2 * lasts
  if present and not yields and not is_stale and seizes == '0' then return { 'following' } end
  term = holder .. '/' .. redis.call('HINCRBY', terms, 'count', 1)
end
redis.call('SET', lead, term, 'PX', lasts)
redis.call('HSET', terms, 'off', isOff)
return { 'leading', term }
`;

/** Lifetime of leadership that is not renewed. */
export const controllerLeaseMs = 15_000;

export interface LeadCandidate {
  /** Differs between controllers. */
  readonly holder: string;
  /** Its last term, which goes on unless another one has begun; empty when it has had none. */
  readonly term: string;
  /** True when its clock is more than 2 s off. */
  readonly isOff: boolean;
}

/**
 * Takes or keeps the leadership for some time. Returns the term, which the scripts of a leader check: steps of an earlier
 * term change nothing, even those of the same controller. `null` while another one leads.
 */
export async function takeLead(
  store: RecordStore,
  candidate: LeadCandidate,
  leaseMs = controllerLeaseMs,
): Promise<string | null> {
  const { holder, term, isOff } = candidate;
  const call = { holder, term, milliseconds: leaseMs, isOff: isOff ? '1' : '0', seizes: '0' };
  const reply = await run(store, leadershipScript, call);
  return reply[0] === 'leading' ? text(reply[1]) : null;
}

/** Controllers take a lease of more than twice theirs for that of one that died. */
const seizedLeaseMs = 2 * controllerLeaseMs;

/**
 * Ends the term of the controller that leads, and keeps controllers from leading for 30 s. Returns the term, with which the next call prolongs it;
 * the first one has none.
 */
export async function seizeLead(store: RecordStore, holder: string, term = ''): Promise<string> {
  const call = { holder, term, milliseconds: seizedLeaseMs, isOff: '0', seizes: '1' };
  const [, seized] = await run(store, leadershipScript, call);
  return text(seized);
}

export async function leaveLead(store: RecordStore, term: string): Promise<void> {
  await run(store, leadershipScript, { holder: '', term, milliseconds: 0, isOff: '0', seizes: '0' });
}

/** Returns true while no other term has begun since this one. */
export async function isLastTerm(connection: Connection, term: string): Promise<boolean> {
  return term.endsWith(`/${await connection.read(['HGET', keys.terms, 'count'])}`);
}

/** Returns true when the controller that leads has said that its clock is off. */
export async function isLeaderOff(connection: Connection): Promise<boolean> {
  if ((await connection.read(['GET', keys.lead])) === null) return false;
  return (await connection.read(['HGET', keys.terms, 'off'])) === '1';
}
