import { isReply } from './redis-client.ts';
import { isSupportedVersion } from './redis-process.ts';

/** Settings with which Redis keeps every change that it has acknowledged. */
const needed = {
  appendonly: 'yes',
  appendfsync: 'always',
  'no-appendfsync-on-rewrite': 'no',
  'maxmemory-policy': 'noeviction',
};
/** With a replica, the primary must refuse changes while no replica can get them: else a takeover loses them. */
const replicaSetting = 'min-replicas-to-write';

/** Every reason for which Redis may lose what it has acknowledged: a setting, or `hidden` when it does not tell. */
export const weaknesses = [...(Object.keys(needed) as (keyof typeof needed)[]), replicaSetting, 'hidden'] as const;

/** One reason for which Redis may lose what it has acknowledged, with a sentence for the operator. */
interface Weakness {
  readonly reason: (typeof weaknesses)[number];
  readonly text: string;
}

export interface Durability {
  readonly weaknesses: readonly Weakness[];
  /** Replicas that receive its changes now. */
  readonly replicas: number;
}

type Ask = (command: string[]) => Promise<unknown>;

/** A Redis of which it may be known that it has replicas, although perhaps not at this moment. */
interface KnownRedis {
  readonly send: Ask;
  readonly hasReplicas: () => boolean;
}

/**
 * Checks the settings of Redis. `strict` throws a sentence that says which setting is wrong and what to set; a Redis that is
 * too old is refused in `relaxed`, too. Returns what is wrong: with any finding Redis may lose changes that it has acknowledged.
 */
export async function checkDurability(redis: KnownRedis, mode: 'strict' | 'relaxed'): Promise<string[]> {
  const ask: Ask = (command) => redis.send(command);
  const version = (await readSection(ask, 'server'))?.get('redis_version');
  if (version !== undefined && !isSupportedVersion(version)) {
    throw new Error(`Redis is version ${version}: 7.0 or newer is needed`);
  }
  const findings = (await readDurability(ask, redis.hasReplicas())).weaknesses.map(({ text }) => text);
  if (mode === 'strict' && findings.length > 0) {
    throw new Error(`Redis may lose charges: ${findings.join('; ')}; TRAWL_DURABILITY=relaxed starts all the same`);
  }
  return findings;
}

/** Reads how well a Redis keeps its changes; `hasReplicas`: it is known to have some, although perhaps not at this moment. */
export async function readDurability(ask: Ask, hasReplicas: boolean): Promise<Durability> {
  const [settings, replication] = await Promise.all([readSettings(ask), readSection(ask, 'replication')]);
  const online = [...(replication ?? [])].filter(
    ([name, text]) => /^slave\d+$/.test(name) && /state=online/.test(text),
  );
  const found: Weakness[] = [];
  if (settings === undefined) found.push({ reason: 'hidden', text: 'it hides its settings (CONFIG GET)' });
  for (const [reason, value] of Object.entries(settings === undefined ? {} : needed) as [
    keyof typeof needed,
    string,
  ][]) {
    const present = settings?.get(reason);
    if (present !== value) found.push({ reason, text: `${reason} is ${present ?? 'hidden'}, set it to ${value}` });
  }
  if (settings && (hasReplicas || online.length > 0) && !(Number(settings.get(replicaSetting)) >= 1)) {
    const present = settings.get(replicaSetting) ?? 'hidden';
    found.push({ reason: replicaSetting, text: `${replicaSetting} is ${present}, set it to 1` });
  }
  if (replication === undefined) found.push({ reason: 'hidden', text: 'it hides its version (INFO)' });
  return { weaknesses: found, replicas: online.length };
}

async function readSettings(ask: Ask): Promise<Map<string, string> | undefined> {
  const reply = await askUnlessHidden(ask, ['CONFIG', 'GET', ...Object.keys(needed), replicaSetting]);
  const words = Array.isArray(reply) ? reply.map(String) : [];
  if (words.length === 0) return undefined;
  return new Map(words.flatMap((name, n) => (n % 2 === 0 ? [[name, words[n + 1] ?? '']] : [])));
}

/** Returns a section of INFO; `undefined` where Redis hides it. */
export async function readSection(ask: Ask, section: string): Promise<Map<string, string> | undefined> {
  const reply = await askUnlessHidden(ask, ['INFO', section]);
  if (reply === undefined) return undefined;
  const lines = String(reply).split('\r\n');
  return new Map(lines.flatMap((line) => (line.includes(':') ? [line.split(/:(.*)/s, 2) as [string, string]] : [])));
}

/** Returns `undefined` where a managed Redis does not know or allow the command. */
async function askUnlessHidden(ask: Ask, command: string[]): Promise<unknown> {
  try {
    return await ask(command);
  } catch (error) {
    if (isReply(error)) return undefined;
    throw error;
  }
}
