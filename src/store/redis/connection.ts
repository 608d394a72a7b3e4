import type { Log } from '../../base/log.ts';
import { makeEval, type Patience } from './call-sender.ts';
import { followTopology, type RedisTopology } from './discovery.ts';
import { type ObserveReplicas, watchDurability } from './durability-watch.ts';
import { watchNewConnections } from './new-connections.ts';
import { type ConnectionCare, ReconnectingConnection } from './reconnecting-connection.ts';
import { logInAgain, type RedisClient } from './redis-client.ts';
import { type RecordClock, RedisClock } from './redis-time.ts';
import { type Listener, openSubscriptions } from './subscriptions.ts';

/** The reply to each command that changes nothing. */
type ReadReplies = Record<'GET' | 'GETRANGE' | 'HGET' | 'LINDEX' | 'ZSCORE', string | null> &
  Record<'HGETALL' | 'HVALS' | 'LRANGE' | 'SMEMBERS', string[]> &
  Record<`Z${'RANGE' | 'RANGEBYSCORE' | 'REVRANGEBYSCORE'}`, string[]> &
  Record<'XRANGE' | 'XREVRANGE', [id: string, fields: string[]][]> & {
    readonly HMGET: (string | null)[];
    readonly TIME: [seconds: string, microseconds: string];
    readonly HSCAN: [cursor: string, fields: string[]];
    readonly ZCARD: number;
    readonly ZCOUNT: number;
    readonly ZRANK: number | null;
  };
type ReadName = keyof ReadReplies;

export type ReadCommand<N extends ReadName = ReadName> = readonly [N, ...string[]];

interface ConnectOptions {
  readonly log: Log;
  readonly observeReplicas?: ObserveReplicas | undefined;
  readonly patience?: Patience | undefined;
  /** Longest wait for the first connection to a Redis that is late. */
  readonly openMs?: number | undefined;
}

/**
 * Connection to the record. Every call is answered, or fails with `unavailable` and its cause, within two seconds, or within the
 * patience of its process. A command whose answer was lost (`LostAnswer`) may have run; it is never sent again. Replies are
 * strings, numbers, `null`, and lists of these.
 */
export type Connection = Awaited<ReturnType<typeof connect>>;

/**
 * Connects to Redis, and again whenever that is lost; fails when Redis does not answer at first. User and password of the URL may
 * change meanwhile: a connection that is there gives the new ones within a second.
 */
export async function connect(
  url: string | (() => string),
  { log, observeReplicas, patience, openMs }: ConnectOptions,
) {
  const topology = followTopology(typeof url === 'string' ? () => url : url, log);
  const clock = new RedisClock();
  const durability = watchDurability(topology.hasReplicas, observeReplicas);
  const care = careFor(topology, clock, durability, log);
  const kept = new ReconnectingConnection(topology, log, care, patience, openMs);
  const { calls } = kept;
  await kept.open();
  let channels: ReturnType<typeof openSubscriptions> | undefined;
  return {
    clock: clock as RecordClock,
    timeoutMs: calls.timeoutMs,
    /**
     * Runs a script, by its hash where Redis knows it already. Its first argument is the moment at which the call is given up, in
     * TIME of Redis: a script that would begin later answers {'late', …}, and the call fails as for any other timeout.
     */
    eval: makeEval(calls, clock),
    read: <N extends ReadName>(command: ReadCommand<N>) =>
      calls.make((call) => calls.send(call, command) as Promise<ReadReplies[N]>),
    /** Sends several of these in one go; fails when one of them fails. */
    readAll: (commands: readonly ReadCommand[]): Promise<unknown[]> =>
      calls.make((call) => Promise.all(commands.map((command) => calls.send(call, command)))),
    /** Reads strings that are no text; `null` for one that is not there. */
    readBytes: (keys: readonly string[]) =>
      calls.make((call) => calls.send(call, ['MGET', ...keys], { asBytes: true }) as Promise<(Buffer | null)[]>),
    /** Sends any other command, such as one that removes a member of a set. */
    send: (command: readonly (string | Buffer)[]) => calls.make((call) => calls.send(call, command)),
    /** Calls the listener with each message from now on, but for those sent while Redis is away. Returns a function that ends that. */
    subscribe: (channel: string, listener: Listener): Promise<() => Promise<void>> =>
      calls.make(async (call) => {
        if (!calls.client()) throw new Error('There is no connection');
        channels ??= openSubscriptions(topology, log);
        const end = await channels.subscribe(channel, listener);
        if (call.isOver) await end();
        return () => calls.make(end);
      }),
    /** False while there is no connection. */
    ready: () => calls.client() !== undefined,
    /** Returns how well the Redis in use keeps what it acknowledges, as it was last seen. */
    durability: durability.last,
    /** Calls the listener after each look at the Redis in use, and before calls go to another one. Returns a function that ends that. */
    watchDurability: durability.watch,
    /** True once a replica was seen, or when Sentinels watch the record. */
    hasReplicas: durability.hasReplicas,
    /** Returns how many commands were sent. */
    calls: () => calls.sent(),
    /** Closes it once the calls under way are answered. */
    close: async (): Promise<void> => {
      await Promise.all([kept.close(), channels?.close()]);
    },
  };
}

type Durabilities = ReturnType<typeof watchDurability>;

function careFor(topology: RedisTopology, clock: RedisClock, durability: Durabilities, log: Log): ConnectionCare {
  const tryNewConnections = watchNewConnections(topology, log);
  const readTime = (client: RedisClient) => clock.read(() => client.sendCommand(['TIME']));
  return {
    prepare: async (client) => {
      const [, cover] = await Promise.all([readTime(client), durability.look(client)]);
      return cover;
    },
    check: async (client) => {
      if (!(await logInAgain(client, topology.login())))
        log.error('redis refuses the new user or password: the next connection will fail');
      void tryNewConnections();
      await readTime(client);
      return durability.lookAgain(client);
    },
  };
}
