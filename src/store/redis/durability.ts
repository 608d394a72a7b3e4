import { Refusal } from '../../base/errors.ts';
import type { Connection } from './connection.ts';
import { isSupportedVersion } from './redis-process.ts';

export interface Durability {
  /** True when Redis may lose changes that it has acknowledged. */
  readonly relaxed: boolean;
  readonly findings: string[];
}

/** Settings with which Redis keeps every change that it has acknowledged. */
const needed = { appendonly: 'yes', appendfsync: 'always', 'maxmemory-policy': 'noeviction' };

/**
 * Checks the settings of Redis. `strict` throws a sentence that says which setting is wrong and what to set; a Redis that is
 * too old is refused in `relaxed`, too.
 */
export async function checkDurability(connection: Connection, mode: 'strict' | 'relaxed'): Promise<Durability> {
  const version = (await readSection(connection, 'server'))?.get('redis_version');
  if (version !== undefined && !isSupportedVersion(version)) {
    throw new Error(`Redis is version ${version}: 7.0 or newer is needed`);
  }
  const findings = await readSettings(connection);
  if (version === undefined) findings.push('it hides its version (INFO)');
  if (mode === 'strict' && findings.length > 0) {
    throw new Error(`Redis may lose charges: ${findings.join('; ')}; TRAWL_DURABILITY=relaxed starts all the same`);
  }
  return { relaxed: findings.length > 0, findings };
}

/** Returns the used share of Redis's memory limit, from 0 to about 1; 0 without a limit. */
export async function memoryRatio(connection: Connection): Promise<number> {
  const memory = await readSection(connection, 'memory');
  const limit = Number(memory?.get('maxmemory') ?? 0);
  return limit > 0 ? Number(memory?.get('used_memory')) / limit : 0;
}

async function readSettings(connection: Connection): Promise<string[]> {
  const reply = await readUnlessHidden(connection, ['CONFIG', 'GET', ...Object.keys(needed)]);
  const words = Array.isArray(reply) ? reply.map(String) : [];
  const found = new Map(words.flatMap((name, n) => (n % 2 === 0 ? [[name, words[n + 1] ?? '']] : [])));
  if (found.size === 0) return ['it hides its settings (CONFIG GET)'];
  return Object.entries(needed)
    .filter(([name, value]) => found.get(name) !== value)
    .map(([name, value]) => `${name} is ${found.get(name) ?? 'hidden'}, set it to ${value}`);
}

async function readSection(connection: Connection, section: string): Promise<Map<string, string> | undefined> {
  const reply = await readUnlessHidden(connection, ['INFO', section]);
  if (reply === undefined) return undefined;
  const lines = String(reply).split('\r\n');
  return new Map(lines.flatMap((line) => (line.includes(':') ? [line.split(/:(.*)/s, 2) as [string, string]] : [])));
}

/** Returns `undefined` where a managed Redis does not know or allow the command. */
async function readUnlessHidden(connection: Connection, command: string[]): Promise<unknown> {
  try {
    return await connection.send(command);
  } catch (error) {
    if (error instanceof Refusal) throw error;
    return undefined;
  }
}
