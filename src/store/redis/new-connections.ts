import type { Log } from '../../base/log.ts';
import { type Question, type RedisTopology, withHost } from './discovery.ts';
import { readSection } from './durability.ts';
import { askOnce, isReply } from './redis-client.ts';

/** A server that later connections ask, or a replica that may become the primary, and its answer to a connection that was opened for a trial. */
export interface TriedServer {
  readonly kind: 'Sentinel' | 'Redis' | 'replica';
  readonly address: string;
  /** `null` when it takes the connection. */
  readonly error: Error | null;
}

const everyMs = 60_000;
const refused = /^(WRONGPASS|NOAUTH|NOPERM|ERR AUTH|ERR invalid password)/;

/** Opens a connection to each Sentinel or node and, behind Sentinels, to each replica, as the next connection would be opened. */
export async function tryNewConnections(topology: RedisTopology): Promise<TriedServer[]> {
  const kind = topology.hasReplicas ? 'Sentinel' : 'Redis';
  const [asked, replicas] = await Promise.all([
    Promise.all(topology.questions().map((question) => tryServer(kind, question))),
    topology.hasReplicas ? findReplicas(topology) : [],
  ]);
  return [
    ...asked,
    ...(await Promise.all(
      replicas.map((url) => tryServer('replica', { address: new URL(url).host, url, words: ['PING'] })),
    )),
  ];
}

export function isLoginRefused(error: unknown): boolean {
  return isReply(error, refused);
}

async function tryServer(kind: TriedServer['kind'], question: Question): Promise<TriedServer> {
  const { address, url, words, login } = question;
  return askOnce(url, words, login).then(
    () => ({ kind, address, error: null }),
    (error: Error) => ({ kind, address, error }),
  );
}

/** Returns none while the primary cannot be asked: other checks report that. */
async function findReplicas(topology: RedisTopology): Promise<string[]> {
  try {
    const primary = await topology.find(0);
    const seen = await readSection((words) => askOnce(primary, words), 'replication');
    return [...(seen ?? [])].flatMap(([name, text]) => {
      const [, host, port] = (/^slave\d+$/.test(name) && /^ip=([^,]+),port=(\d+)/.exec(text)) || [];
      return host === undefined ? [] : withHost(primary, host, Number(port));
    });
  } catch {
    return [];
  }
}

/**
 * Returns what tries new connections each minute and after a change of the login, and logs each server that begins to refuse: a connection
 * that lasts does not tell that the next one would be refused.
 */
export function watchNewConnections(topology: RedisTopology, log: Log): () => Promise<void> {
  const refusing = new Set<string>();
  let triedAt = performance.now();
  let lastLogin = String(topology.login());
  return async () => {
    const login = String(topology.login());
    if (login === lastLogin && performance.now() - triedAt < everyMs) return;
    lastLogin = login;
    triedAt = performance.now();
    const tried = await tryNewConnections(topology).catch((error) => {
      log.warn('new connections to redis could not be tried', { error });
      return [];
    });
    for (const { kind, address, error } of tried) {
      if (error === null) refusing.delete(address);
      if (!isLoginRefused(error) || refusing.has(address)) continue;
      refusing.add(address);
      log.error('redis refuses a new connection: the next one may fail', { kind, address, error });
    }
  };
}
