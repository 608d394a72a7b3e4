import { hash } from 'node:crypto';
import type { Connection } from '../../src/store/redis/connection.ts';
import { scripts } from '../../src/store/script.ts';
import type { TestStore } from './record.ts';

/** Commands that change the record. */
const writes = [
  ...[
    'SET',
    'SETRANGE',
    'BITFIELD',
    'DEL',
    'PEXPIRE',
    'EXPIRE',
    'INCR',
    'HSET',
    'HDEL',
    'HINCRBY',
    'SADD',
    'SREM',
    'ZADD',
  ],
  ...['ZREM', 'ZINCRBY', 'ZREMRANGEBYSCORE', 'RPUSH', 'LPUSH', 'RPOP', 'LPOP', 'LREM', 'LSET', 'XADD', 'XDEL', 'XTRIM'],
];
const words = 'a fault of the test';

/** Lua that stands before a script: stops its clock, and fails in place of its n-th write; 0 for none. */
function prelude(fault: number, now: number): string {
  return `
local real, seen, is_write = redis, 0, {}
for name in string.gmatch('${writes.join(' ')}', '%u+') do is_write[name] = true end
local redis = { pcall = real.pcall, sha1hex = real.sha1hex, call = function(name, ...)
  if name == 'TIME' then return { '${Math.ceil(now / 1000)}', '0' } end
  if is_write[name] then
    seen = seen + 1
    if seen == ${fault} then error('${words}') end
  end
  return real.call(name, ...)
end }
`;
}

/** A store in which one script runs at one moment and fails in place of its n-th write; 0 for none. */
export function withFault(store: TestStore, scriptName: string, fault: number, now: number): TestStore {
  const wanted = scripts.find(({ name }) => name === scriptName)?.lua;
  if (wanted === undefined) throw new Error(`there is no script ${scriptName}`);
  const { connection } = store;
  const evalFaulty: Connection['eval'] = (lua, sha, keys, args, options) => {
    if (lua !== wanted) return connection.eval(lua, sha, keys, args, options);
    const faulty = lua.replace('\n', `\n${prelude(fault, now)}`);
    return connection.eval(faulty, hash('sha1', faulty), keys, args, options);
  };
  const clock = { ...store.clock, now: () => now + store.clock.offset() };
  return { ...store, clock, connection: { ...connection, eval: evalFaulty } };
}

export function isFault(error: unknown): boolean {
  return error instanceof Error && error.message.includes(words);
}

/** What every key holds, with the ids of streams by their place: they depend on the moment. */
export async function contentOf({ connection }: TestStore): Promise<Record<string, unknown>> {
  const keys = ((await connection.send(['KEYS', '{trawl}:*'])) as string[]).sort();
  const content: Record<string, unknown> = {};
  const ids = new Map<string, string>();
  for (const key of keys) content[key] = await read(connection, key);
  for (const [key, value] of Object.entries(content)) {
    if (!Array.isArray(value) || !Array.isArray(value[0])) continue;
    const entries = value as [string, string[]][];
    if (key.includes(':ledger:')) for (const [n, [id]] of entries.entries()) ids.set(id, `entry ${n}`);
    content[key] = entries.map(([, fields]) => fields);
  }
  return JSON.parse(
    JSON.stringify(content, (_, value) => (typeof value === 'string' ? (ids.get(value) ?? value) : value)),
  );
}

async function read(connection: Connection, key: string): Promise<unknown> {
  const kind = await connection.send(['TYPE', key]);
  switch (kind) {
    case 'string':
      return connection.send(['GETRANGE', key, '0', '-1']);
    case 'hash': {
      const flat = (await connection.send(['HGETALL', key])) as string[];
      const fields = flat.flatMap((name, n) => (n % 2 === 0 ? [[name, flat[n + 1]] as const] : []));
      // A field without a value is the same as none.
      return Object.fromEntries(fields.filter(([, value]) => value !== '').sort(([a], [b]) => (a < b ? -1 : 1)));
    }
    case 'zset':
      return connection.send(['ZRANGE', key, '0', '-1', 'WITHSCORES']);
    case 'set':
      return ((await connection.send(['SMEMBERS', key])) as string[]).sort();
    case 'list':
      return connection.send(['LRANGE', key, '0', '-1']);
    default: {
      const entries = (await connection.send(['XRANGE', key, '-', '+'])) as unknown[];
      return entries.length === 0 ? undefined : entries;
    }
  }
}

/** Remembers the whole record in other databases, so that it can be put back. */
export async function keepRecord({ connection }: TestStore): Promise<() => Promise<void>> {
  const keys = (await connection.send(['KEYS', '{trawl}:*'])) as string[];
  const copy = async (key: string, from: string, to: string) =>
    connection.send(['COPY', from + key, to + key, 'REPLACE']);
  for (const key of keys) await copy(key, '', keptPrefix);
  return async () => {
    const present = (await connection.send(['KEYS', '{trawl}:*'])) as string[];
    if (present.length > 0) await connection.send(['DEL', ...present]);
    for (const key of keys) await copy(key, keptPrefix, '');
  };
}

/** Kept keys do not begin as those of the record do. */
const keptPrefix = 'kept:';
