import { runCommand as runAdmin } from '../../src/admin/admin.ts';
import { keys } from '../../src/store/keys.ts';
import { wholeService } from '../../src/store/lua/note-change.ts';
import { openRedisClient } from '../../src/store/redis/redis-client.ts';
import type { Json } from './json.ts';
import type { CommandResult } from './operator.ts';

/** One `admin` command in this process, beside a Redis and a data folder, that answers with JSON. */
export async function runBeside(
  line: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<CommandResult & { readonly json: Json }> {
  const said = await sayBeside([...line, '--json'], env);
  return { ...said, json: JSON.parse(said.out || 'null') };
}

/** The same as people see it. */
export async function sayBeside(
  line: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<CommandResult> {
  const said = { out: '', err: '' };
  const terminal = {
    out: (text: string) => {
      said.out += text;
    },
    err: (text: string) => {
      said.err += text;
    },
    isWatched: false,
    env: { TRAWL_DURABILITY: 'relaxed', ...env },
  };
  return { code: await runAdmin(line, terminal), ...said };
}

/** Keys that a restore writes itself, so that they differ from the backup. */
export const keysOfRestore = [keys.backup, keys.restored, keys.audit(wholeService), keys.auditStreams, keys.invoices];

/** Every key of the record with its value as Redis serializes it. */
export async function dumpRecord(url: string): Promise<Map<string, string>> {
  const client = await openRedisClient(url);
  try {
    const names = (await client.sendCommand(['KEYS', '{trawl}:*'])) as unknown as string[];
    const values = await Promise.all(names.sort().map((name) => readValue(client, name)));
    return new Map(names.map((name, n) => [name, values[n]!]));
  } finally {
    client.destroy();
  }
}

type Client = Awaited<ReturnType<typeof openRedisClient>>;

/** How a value is kept may differ, so it is read as its type. */
async function readValue(client: Client, name: string): Promise<string> {
  const type = String(await client.sendCommand(['TYPE', name]));
  const commands: Record<string, string[]> = {
    string: ['GET', name],
    hash: ['HGETALL', name],
    set: ['SMEMBERS', name],
    zset: ['ZRANGE', name, '0', '-1', 'WITHSCORES'],
    list: ['LRANGE', name, '0', '-1'],
    stream: ['XRANGE', name, '-', '+'],
  };
  const value: unknown = await client.sendCommand(commands[type] ?? ['DUMP', name]);
  const lasts = Number(await client.sendCommand(['PEXPIRETIME', name]));
  // Redis orders hashes and sets as it likes.
  const shown = type === 'hash' || type === 'set' ? sorted(value as string[], type === 'hash' ? 2 : 1) : value;
  return JSON.stringify([type, lasts, shown]);
}

function sorted(words: readonly string[], width: number): string[] {
  const rows = words.flatMap((_, n) => (n % width === 0 ? [words.slice(n, n + width).join('=')] : []));
  return rows.sort();
}
