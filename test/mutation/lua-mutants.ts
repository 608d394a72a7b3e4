import { hash } from 'node:crypto';
import type { Connection } from '../../src/store/redis/connection.ts';

/** An operation of the record with a fault. */
export interface LuaMutant {
  /** Operation and what it does wrong. */
  readonly name: string;
  /** A word that the operation answers: every script that answers this word is mutated where it has the place. */
  readonly within: string;
  /** The place: commands, fields of the record and words of replies, which no rename changes. */
  readonly place: RegExp;
  readonly instead: string;
}

const mutant = (name: string, within: string, place: RegExp, instead = ''): LuaMutant => ({
  name,
  within,
  place,
  instead,
});
/** A refusal that is left out: the one with this word, and with this detail where it has several. */
const drop = (name: string, within: string, word: string, detail?: string): LuaMutant => {
  const words = detail === undefined ? `'${word}'` : `'${word}', '${detail}'`;
  return mutant(name, within, new RegExp(`return (?:\\w+\\(${words}.*\\)(?= end|\\n)|\\{ ${words} \\})`));
};

const admission = [
  mutant(
    'admit-call: admits without a free credit',
    'admitted',
    /< wanted then return answer\('payment_required'\)/,
    "< 0 then return answer('payment_required')",
  ),
  mutant('admit-call: admits with an unpaid invoice', 'admitted', /\w+ ~= 'paid' or /),
  mutant('admit-call: holds nothing', 'admitted', /('held', .*?) \+ 1/, '$1'),
  mutant('admit-call: queues no job', 'admitted', /redis\.call\('ZADD', queue,.*/),
  drop('admit-call: repeats a call with other parameters', 'admitted', 'idempotency_conflict', 'request'),
  drop('admit-call: repeats a call that still runs', 'admitted', 'idempotency_conflict', 'running'),
  drop('admit-call: ignores the total quota', 'admitted', 'key_quota_exceeded', 'total'),
  mutant('admit-call: ignores the daily quota', 'admitted', / or \w+ and 'daily'/),
  mutant('admit-call: keeps no windows of the quotas', 'admitted', /('last_used_at', \w+),\s+'windows', .*/, '$1)'),
  drop('admit-call: admits more open jobs than the account may have', 'admitted', 'rate_limited', 'open-jobs'),
  drop('admit-call: admits calls of a suspended account', 'admitted', 'forbidden'),
  drop('authorize: lets an inactive key in', 'entered', 'inactive_api_key'),
  drop('authorize: lets an expired key in', 'entered', 'expired_api_key'),
  drop('authorize: ignores the rate per second', 'entered', 'rate_limited', 'per-second'),
  mutant('sliding-window: forgets a window one bucket early', 'admitted', / > (\S+ then\n)/, ' >= $1'),
];
const endings = [
  mutant('settle-job: charges twice', 'settled', /and (draw\(\w+\))/, 'and $1 and $1'),
  mutant('settle-job: charges a failed job', 'settled', /\w+ and (draw\(\w+\)) or ''/, '$1'),
  mutant('settle-job: keeps the hold', 'settled', /\w+\('held', .*\)/),
  mutant('settle-job: leaves the job open', 'settled', /redis\.call\('DEL', job\)/),
  drop('settle-job: obeys a controller that does not lead', 'settled', 'not_leading'),
  drop('settle-job: completes an attempt that is over', 'settled', 'stale'),
  mutant('settle-job: logs a charge as free', 'settled', /'credits', \w+ and '1' or '0'/, "'credits', '0'"),
  mutant('settle-job: keeps the slot', 'settled', /\w+\('running', \w+\.running - 1\)/),
  mutant('settle-job: sends no webhook', 'settled', /redis\.call\('ZADD', webhooks,.*/),
  mutant(
    'cancel-job: charges the job',
    'cancelled',
    /status = 'Error', code = 'cancelled'/,
    "status = 'CompletedJob', code = 'cancelled'",
  ),
  mutant('retry-job: counts no failure', 'waiting', /fields\[counter\] \+ 1/, 'fields[counter]'),
  mutant('retry-job: keeps the slot', 'waiting', /('%d', running) - 1/, '$1'),
  mutant('note-progress: lets progress fall', 'noted', /math\.max\(/, 'select(2, '),
  drop('record-verdict: takes the verdict of an attempt that is over', 'told', 'stale'),
];
const money = [
  mutant('draw: takes the newest pack first', 'settled', /('ZRANGE', packQueue), \w+, \w+/, '$1, -1, -1'),
  mutant(
    'draw: takes a credit that is not there',
    'settled',
    /\w+\('overdraft', .*\)/,
    "redis.call('HINCRBY', account, 'credits_consumed', 1)",
  ),
  mutant('roll-period: lets no quota lapse', 'rolled', /\w+\(0\)\n/, '\n'),
  mutant('roll-period: keeps what was used', 'rolled', /\w+\('used', 0\)/),
  drop('charge-call: charges a hold after its deadline', 'charged', 'gone'),
  drop('release-call: releases a hold twice', 'released', 'gone'),
];
const others = [
  drop('take-jobs: takes more jobs than there are slots', 'taken', 'full'),
  mutant('take-jobs: ignores the weight of an account', 'taken', /1 \/ tonumber\(\w+\[1\]\)/, '1'),
  mutant('take-lead: takes the lead from its holder', 'leading', /return \{ 'following' \}/),
  mutant('end-webhook: tries without end', 'delivered', /== 'again' and .* then/, "== 'again' then"),
  drop('end-webhook: ends an attempt that another has overtaken', 'delivered', 'stale'),
];

export const luaMutants: readonly LuaMutant[] = [...admission, ...endings, ...money, ...others];

const wanted = luaMutants.find(({ name }) => name === process.env.LUA_MUTANT);
let times = 0;
if (wanted) process.once('exit', () => console.log(`mutated ${times} times`));

/** Returns a connection that runs the mutant which LUA_MUTANT names in place of its operation. */
export function mutateLua(connection: Connection): Connection {
  if (!wanted) return connection;
  const { within, place, instead } = wanted;
  return {
    ...connection,
    async eval(lua, sha, keys, args, asBytes) {
      if (!lua.includes(`'${within}'`) || !place.test(lua)) return connection.eval(lua, sha, keys, args, asBytes);
      const mutated = lua.replace(place, instead);
      const reply = await connection.eval(mutated, hash('sha1', mutated), keys, args, asBytes);
      // A mutant that Redis cannot run is none.
      times++;
      return reply;
    },
  };
}
