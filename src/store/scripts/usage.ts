import { doorArgs, doorKeys, freeDoor } from '../lua/door.ts';
import { script } from '../script.ts';

/**
 * The usage snapshot: the door and all its numbers in one call. Answers {'entered', '', '', limits ×4, fields of the
 * account, fields of the packs, fields of the key, JSON of the plan or ''}, {'roll'} when the period must be rolled first,
 * or a refusal.
 */
export const usage = script(
  'usage',
  'always',
  [...doorKeys, 'packs'],
  doorArgs,
  /* lua */ `${freeDoor({ rolls: true })}
return { 'entered', '', '', limits[1], limits[2], limits[3], limits[4], redis.call('HGETALL', account),
  redis.call('HGETALL', packs), redis.call('HGETALL', key), plan_json or '' }
`,
);
