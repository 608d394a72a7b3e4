import type { Log } from '../../base/log.ts';
import { askOnce, loginOf } from './redis-client.ts';

/** A command for one server, and the login that it may want beside that of its URL. */
export interface Question {
  /** Host without a login. */
  readonly address: string;
  readonly url: string;
  readonly words: readonly string[];
  readonly login?: readonly string[];
}

/** A Cluster keeps all of the record on one node, because its keys share one tag, though not always on the same. */
export interface RedisTopology {
  /** Hosts without a login, for logs. */
  readonly name: string;
  /** True when replicas stand by, because Sentinels watch the record; elsewhere Redis is asked. */
  readonly hasReplicas: boolean;
  /** Returns the URL of the node that has the record now. Each turn asks another node first. */
  readonly find: (turn: number) => Promise<string>;
  /** Notes a MOVED error: this is a Cluster, so the owner of the slot must be looked up. */
  readonly moved: () => void;
  /** User and password, as they are to be given now. */
  readonly login: () => readonly string[];
  /** Questions of the next connection: those to each Sentinel, or to each known node. */
  readonly questions: () => readonly Question[];
}

/** The hash slot of `{trawl}`. */
const slot = 11_042;
const sentinelUrl = /^redis\+sentinel:\/\/(?:([^/]*)@)?([^@/]+)\/([^/?#]+)(?:\/(\d+))?$/;
const sentinelPort = '26379';

/** Reads a Redis URL: one, several with commas between for a Cluster, `redis+sentinel://`, or `unix://` with a path. */
export function readTopology(url: string): RedisTopology {
  const sentinels = sentinelUrl.exec(url);
  if (sentinels) return behindSentinels(sentinels);
  const nodes = url.split(',').map((part) => part.trim());
  if (nodes.every((node) => /^(rediss?|unix):\/\/./.test(node))) return atNodes(nodes);
  throw new Error(
    'A Redis URL has the form redis://host:port, rediss://host:port, redis+sentinel://host:port,host:port/name or unix:///path',
  );
}

/** Reads a URL whose user and password may change; any other change of it needs a restart. */
export function followTopology(read: () => string, log: Log): RedisTopology {
  let seen = read();
  let present = readTopology(seen);
  const first = withoutLogins(seen);
  const current = (): RedisTopology => {
    const url = read();
    if (url === seen) return present;
    seen = url;
    if (withoutLogins(url) === first) present = readTopology(url);
    else log.error('another redis is named, which needs a restart: the one before is used');
    return present;
  };
  return {
    name: present.name,
    hasReplicas: present.hasReplicas,
    find: (turn) => current().find(turn),
    moved: () => current().moved(),
    login: () => current().login(),
    questions: () => current().questions(),
  };
}

function withoutLogins(url: string): string {
  return url.replace(/(\/\/)[^/,]*@/g, '$1');
}

function nameOf(url: string): string {
  return url.replace(/^.*@|^\w+:\/\//, '');
}

function atNodes(given: readonly string[]): RedisTopology {
  let nodes = given;
  let isCluster = given.length > 1;
  return {
    hasReplicas: false,
    name: given.map(nameOf).join(','),
    find: async (turn) => {
      if (!isCluster) return nodes[0]!;
      return askFirst(nodes, turn, async (asked) => {
        const shards = readShards(await askOnce(asked, ['CLUSTER', 'SLOTS']), asked);
        const owner = shards.find(({ from, to }) => from <= slot && slot <= to)?.nodes[0];
        if (owner === undefined) throw new Error('No node of the Cluster has the slot of the record');
        nodes = [...new Set([...given, ...shards.flatMap((shard) => shard.nodes)])];
        return owner;
      });
    },
    moved: () => {
      isCluster = true;
    },
    login: () => loginOf(given[0]!),
    questions: () => nodes.map((url) => ({ address: nameOf(url), url, words: ['PING'] })),
  };
}

function behindSentinels([, login, hosts = '', name = '', database = '0']: readonly string[]): RedisTopology {
  const sentinels = hosts.split(',').map((host) => withDefaultPort(`redis://${host}`));
  const master = new URL(`redis://${login === undefined ? '' : `${login}@`}master/${database}`);
  const credentials = [master.username, master.password].filter((part) => part !== '').map(decodeURIComponent);
  const words = ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', decodeURIComponent(name)];
  return {
    name: hosts,
    hasReplicas: true,
    find: (turn) =>
      askFirst(sentinels, turn, async (sentinel) => {
        const reply = await askOnce(sentinel, words, credentials);
        if (!Array.isArray(reply)) throw new Error(`The Sentinels know no master with the name ${name}`);
        return withHost(master.href, String(reply[0]), Number(reply[1]));
      }),
    moved: () => {},
    login: () => loginOf(master.href),
    questions: () => sentinels.map((url) => ({ address: nameOf(url), url, words, login: credentials })),
  };
}

/** Returns the answer of the first node that gives one, beginning with another one each turn; throws the last error. */
async function askFirst<T>(urls: readonly string[], turn: number, ask: (url: string) => Promise<T>): Promise<T> {
  let failure: unknown;
  for (const [n] of urls.entries()) {
    try {
      return await ask(urls[(turn + n) % urls.length]!);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/**
 * Each row holds the first slot, the last slot, and nodes as host, port, …; no host means that of the node that was asked. Returns the
 * nodes as URLs, that of the master first.
 */
function readShards(reply: unknown, asked: string) {
  const rows = reply as [number, number, ...[string | null, number][]][];
  return rows.map(([from, to, ...nodes]) => ({
    from,
    to,
    nodes: nodes.map(([host, port]) => withHost(asked, host || new URL(asked).hostname, port)),
  }));
}

export function withHost(url: string, host: string, port: number): string {
  const changed = new URL(url);
  changed.hostname = /^[^[].*:/.test(host) ? `[${host}]` : host;
  changed.port = String(port);
  return changed.href;
}

function withDefaultPort(url: string): string {
  const changed = new URL(url);
  changed.port ||= sentinelPort;
  return changed.href;
}
