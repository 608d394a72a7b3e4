import { Refusal, refuse } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { type RedisTopology, readTopology } from './discovery.ts';
import { ReconnectingConnection } from './reconnecting-connection.ts';
import { isReply, type RedisClient } from './redis-client.ts';
import { type Listener, Subscriptions } from './subscriptions.ts';
import { RedisTimeout, withTimeout } from './timeout.ts';

/** A command that changes nothing, with its arguments. */
export type ReadCommand = readonly [
  (
    | 'GET'
    | `H${'GET' | 'MGET' | 'GETALL' | 'VALS'}`
    | `L${'INDEX' | 'RANGE'}`
    | 'SMEMBERS'
    | `X${'RANGE' | 'REVRANGE'}`
    | `Z${'CARD' | 'COUNT' | 'RANGE' | 'RANGEBYSCORE' | 'RANK' | 'REVRANGE' | 'REVRANGEBYSCORE'}`
    | 'TIME'
  ),
  ...string[],
];

/**
 * Connection to the record. Every call is answered, or fails with `unavailable` and its cause, within two seconds. A command whose
 * answer was lost may have run; it is never sent again. Replies are strings, numbers, `null`, and lists of these.
 */
export interface Connection {
  /** Runs a script, by its hash where Redis knows it already. */
  eval(lua: string, sha: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /** Sends one command that changes nothing. */
  read(command: ReadCommand): Promise<unknown>;
  /** Sends several of these in one go; fails when one of them fails. */
  readAll(commands: readonly ReadCommand[]): Promise<unknown[]>;
  /** Sends any other command, such as one that removes a member of a set. */
  send(command: readonly string[]): Promise<unknown>;
  /** Calls the listener with each message from now on, but for those sent while Redis is away. Returns a function that ends that. */
  subscribe(channel: string, listener: Listener): Promise<() => Promise<void>>;
  /** False while there is no connection. */
  ready(): boolean;
  /** Returns how many commands were sent. */
  calls(): number;
  /** Closes it once the calls under way are answered. */
  close(): Promise<void>;
}

/** Connects to Redis, and again whenever that is lost; fails when Redis does not answer at first. */
export async function connect(url: string, { log }: { readonly log: Log }): Promise<Connection> {
  const topology = readTopology(url);
  const sender = new CommandSender(topology, log);
  await sender.open();
  let channels: Subscriptions | undefined;
  return {
    eval: (lua, sha, keys, args) => {
      const command = ['EVALSHA', sha, String(keys.length), ...keys, ...args];
      const carrying = () => ['EVAL', lua, ...command.slice(2)];
      return sender.make((call) => sender.send(call, command, carrying));
    },
    read: (command) => sender.make((call) => sender.send(call, command)),
    readAll: (commands) => sender.make((call) => Promise.all(commands.map((command) => sender.send(call, command)))),
    send: (command) => sender.make((call) => sender.send(call, command)),
    subscribe: (channel, listener) =>
      sender.make(async (call) => {
        if (!sender.isReady()) throw new Error('There is no connection');
        channels ??= new Subscriptions(topology, log);
        const end = await channels.subscribe(channel, listener);
        if (call.isOver) await end();
        return () => sender.make(end);
      }),
    ready: () => sender.isReady(),
    calls: () => sender.sent(),
    close: async () => {
      await Promise.all([sender.close(), channels?.close()]);
    },
  };
}

/** A call that waits for its answer. */
interface PendingCall {
  /** True once it was answered or given up. */
  isOver: boolean;
  /** The connection that it used last. */
  client?: RedisClient;
  /** The error for which it was sent to another node. */
  error?: Error;
}

const retryAfterSeconds = 2;
/** Errors of a Redis that cannot run a command now. */
const busy = /^(LOADING|READONLY|MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|MISCONF|OOM|BUSY)\b/;
/** Errors after which another node may run the command: this one did nothing. */
const elsewhere = /^(READONLY|MOVED|CLUSTERDOWN|MASTERDOWN)\b/;

/** Sends commands; each call is answered, or fails with `unavailable` and its cause, within two seconds. */
class CommandSender {
  readonly #topology: RedisTopology;
  readonly #connection: ReconnectingConnection;
  #sent = 0;

  constructor(topology: RedisTopology, log: Log) {
    this.#topology = topology;
    this.#connection = new ReconnectingConnection(topology, log);
  }

  /** Waits for the first connection. */
  async open(): Promise<void> {
    await this.make(() => this.#connection.present()).catch((late: Refusal) => {
      // The start fails now; attempts under way end by themselves.
      void this.#connection.close();
      throw unavailable(this.#connection.cause() ?? late.cause, `Redis cannot be reached at ${this.#topology.name}`);
    });
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  isReady(): boolean {
    return this.#connection.client() !== undefined;
  }

  /** Returns how many commands were sent. */
  sent(): number {
    return this.#sent;
  }

  /** Runs the commands of one call within the timeout. */
  async make<T>(work: (call: PendingCall) => Promise<T>): Promise<T> {
    const call: PendingCall = { isOver: false };
    try {
      return await withTimeout(work(call));
    } catch (error) {
      if (!(error instanceof RedisTimeout)) throw meansAway(error) ? unavailable(error) : error;
      if (call.client) this.#connection.suspect(call.client, error);
      throw unavailable(call.error ?? error);
    } finally {
      call.isOver = true;
    }
  }

  /**
   * Sends one command of a call, and sends it to another node when this one only refused it. When Redis does not know the
   * script of an EVALSHA, the EVAL that carries its text follows.
   */
  async send(call: PendingCall, command: readonly string[], carrying?: () => string[]): Promise<unknown> {
    let client = this.#connection.client();
    let next = command;
    for (;;) {
      if (!client || call.isOver) throw call.error ?? this.#connection.cause() ?? new Error('There is no connection');
      call.client = client;
      this.#sent += 1;
      try {
        const reply = await client.sendCommand(next);
        this.#connection.noteAnswer();
        return reply;
      } catch (error) {
        if (isReply(error)) this.#connection.noteAnswer();
        if (carrying && next === command && isReply(error, /^NOSCRIPT/)) {
          next = carrying();
          continue;
        }
        if (!isReply(error, elsewhere)) throw error;
        if (isReply(error, /^MOVED/)) this.#topology.moved();
        call.error = error;
        this.#connection.leave(client);
        client = await this.#connection.present();
      }
    }
  }
}

/** True for errors of a Redis that is away; false when a command or a reply is wrong. */
function meansAway(error: unknown): boolean {
  if (isReply(error)) return isReply(error, busy);
  return !(error instanceof Refusal || error instanceof TypeError);
}

function unavailable(cause: unknown, sentence?: string): Refusal {
  const reason = sentence && cause instanceof Error ? `${sentence}: ${cause.message}` : sentence;
  return Object.assign(refuse('unavailable', reason, retryAfterSeconds), { cause });
}
