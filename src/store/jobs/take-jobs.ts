import { fairShare, fairShareKeyNames } from '../lua/fair-share.ts';
import { type RecordStore, run, script, text } from '../script.ts';

/**
 * Takes the oldest waiting job of the account whose turn it is. The job keeps a slot of the account and of the whole
 * system until it is settled or waits for another attempt.
 * Answers {'taken', job, whose turn is next or ''}, {'full'}, {'again', whose turn it is or ''}, {'not_leading'}.
 */
const takeScript = script(
  'take',
  'always',
  [...fairShareKeyNames, 'lead', 'active'] as const,
  ['holder', 'accountId', 'slots'] as const,
  /* lua */ `${fairShare}
if redis.call('GET', lead) ~= holder then return { 'not_leading' } end
if redis.call('ZCARD', active) >= tonumber(slots) then return { 'full' } end
local first = redis.call('ZRANGE', ready, 0, 0, 'WITHSCORES')
local id = redis.call('ZRANGE', queue, 0, 0)[1]
if first[1] ~= accountId or not id then return { 'again', first[1] or '' } end
local owner = redis.call('HMGET', account, 'weight', 'concurrency')
redis.call('ZREM', queue, id)
redis.call('ZADD', active, now, id)
redis.call('SET', turn, first[2])
local tag = tonumber(first[2]) + 1 / tonumber(owner[1])
redis.call('HSET', account, 'tag', string.format('%.17g', tag))
update_ready(accountId, redis.call('HINCRBY', account, 'running', 1), owner[2], tag)
return { 'taken', id, redis.call('ZRANGE', ready, 0, 0)[1] or '' }
`,
);

/** Another controller that takes jobs can make every guess of the next account wrong: then the next pass goes on. */
const maxMisses = 100;

/**
 * Returns a generator of jobs in fair order. Each is taken when it is asked for; it ends when `slots` jobs are active or no
 * account may start one.
 */
export function makeTake(store: RecordStore, holder: string, slots: number): () => AsyncGenerator<string, void> {
  // A script names its keys before it runs, so the account is a guess: Redis answers whose turn it is.
  let accountId = '';
  return async function* () {
    for (let misses = 0; misses < maxMisses; ) {
      const [word, ...rest] = await run(store, takeScript, { holder, accountId, slots });
      if (word !== 'taken' && word !== 'again') return;
      const jobId = word === 'taken' ? text(rest.shift()) : null;
      const next = text(rest[0]);
      accountId = next || accountId;
      misses = jobId === null ? misses + 1 : 0;
      if (jobId !== null) yield jobId;
      if (next === '') return;
    }
  };
}
