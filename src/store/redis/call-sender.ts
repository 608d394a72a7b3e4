import { LostAnswer, Refusal } from '../../base/errors.ts';
import { type Cover, replicaMs } from './durability-watch.ts';
import { asBytesOptions, isReply, type RedisClient } from './redis-client.ts';
import { type RedisClock, RedisTimeout, timeoutMs, whenLate, withTimeout } from './redis-time.ts';

type CommandWords = readonly (string | Buffer)[];

interface SendOptions {
  /** Returns the EVAL that carries the text of a script which Redis does not know. */
  readonly carrying?: () => CommandWords;
  readonly asBytes?: boolean | undefined;
  /** Its answer waits until a replica has its change, where there are replicas. */
  readonly isKept?: boolean | undefined;
}

interface EvalOptions extends Pick<SendOptions, 'asBytes' | 'isKept'> {
  /** Another try of a call: it waits for a connection, and is answered within this time. */
  readonly withinMs?: number | undefined;
}

interface Use {
  readonly client: RedisClient;
  /** Absent without replicas. */
  cover: Cover | undefined;
  readonly leave: () => void;
  readonly broke: (why: Error) => void;
}

/** Patience of a process whose calls wait for Redis longer than those of the API. */
export interface Patience {
  readonly timeoutMs: number;
  /** Called for each call that Redis has not answered for 2 s. */
  readonly onSlow: () => void;
}

/** A call that waits for its answer. */
interface PendingCall {
  /** When it is given up, by `performance.now`. */
  endsAt: number;
  /** True once it was answered or given up. */
  isOver: boolean;
  /** The connection that it used last. */
  client?: RedisClient;
  /** The error for which it is to be sent to another node. */
  error?: Error;
}

/** Errors after which another node may run the command: this one did nothing. */
const elsewhere = /^(READONLY|MOVED|CLUSTERDOWN|MASTERDOWN)\b/;
/** Errors of a Redis that cannot run a command now. */
const busy = /^(LOADING|READONLY|MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|MISCONF|OOM|BUSY)\b/;
const slowMs = 2_000;
const retryAfterSeconds = 2;

/** No replica had a change in time: after a takeover it may be gone. */
class MissingReplica extends Error {
  constructor() {
    super(`No replica had the change within ${replicaMs} ms`);
  }
}

/**
 * Sends the commands of calls over the connection in use, which `ReconnectingConnection` replaces when it breaks. Each call is
 * answered, or fails with `unavailable` and its cause, within two seconds.
 */
export class CallSender {
  readonly timeoutMs: number;
  /** Error for which there is no connection. */
  cause: unknown;
  readonly #onMove: () => void;
  readonly #patience: Patience | undefined;
  #use: Use | undefined;
  #arrival = Promise.withResolvers<RedisClient>();
  #answeredAt = 0;
  #sent = 0;

  /** `onMove` is called when Redis names another node as the one with the record. */
  constructor(onMove: () => void, patience: Patience | undefined) {
    this.#onMove = onMove;
    this.#patience = patience;
    this.timeoutMs = patience?.timeoutMs ?? timeoutMs;
  }

  client(): RedisClient | undefined {
    return this.#use?.client;
  }

  /** Waits for a connection, however long that takes. */
  present(): Promise<RedisClient> {
    return this.#arrival.promise;
  }

  sent(): number {
    return this.#sent;
  }

  begin(use: Use): void {
    this.#use = use;
    this.#arrival.resolve(use.client);
  }

  /** Notes that a connection was looked at, and how its changes reach a replica. */
  noteCover(client: RedisClient, cover: Cover | undefined): void {
    this.#noteAnswer();
    if (this.#use?.client === client) this.#use.cover = cover;
  }

  async make<T>(work: (call: PendingCall) => Promise<T>, milliseconds = this.timeoutMs): Promise<T> {
    const call: PendingCall = { endsAt: performance.now() + milliseconds, isOver: false };
    const endSlow = this.#patience && whenLate(slowMs, this.#patience.onSlow);
    const postpone = (endsAt: number) => {
      call.endsAt = Math.max(call.endsAt, endsAt);
    };
    try {
      return await withTimeout(work(call), milliseconds, postpone);
    } catch (error) {
      if (!(error instanceof RedisTimeout)) throw meansAway(error) ? unavailable(error, undefined, call) : error;
      if (call.client) this.suspect(call.client, error);
      throw unavailable(call.error ?? error, undefined, call);
    } finally {
      endSlow?.();
      call.isOver = true;
    }
  }

  /**
   * Sends one command of a call, and sends it to another node when this one only refused it. When Redis does not know the
   * script of an EVALSHA, the EVAL that carries its text follows.
   */
  async send(
    call: PendingCall,
    command: CommandWords,
    { carrying, asBytes, isKept = false }: SendOptions = {},
  ): Promise<unknown> {
    let client = this.#use?.client;
    let next = command;
    for (;;) {
      if (!client || call.isOver) throw call.error ?? this.#away(call);
      call.client = client;
      // This node may carry the command out that another one refused.
      delete call.error;
      try {
        return await this.#sendOver(client, next, isKept, asBytes);
      } catch (error) {
        if (!isReply(error)) throw error;
        this.#noteAnswer();
        if (carrying && next === command && isReply(error, /^NOSCRIPT/)) {
          next = carrying();
          continue;
        }
        if (!isReply(error, elsewhere)) throw error;
        if (isReply(error, /^MOVED/)) this.#onMove();
        call.error = error;
        this.leave(client);
        client = await this.present();
      }
    }
  }

  /** Returns the error of a call without a connection. Its cause may be a reply, such as WRONGPASS, which no command of the call had. */
  #away(call: PendingCall): Refusal {
    return unavailable(this.cause ?? new Error('There is no connection'), undefined, call);
  }

  /** Sends one command over a connection; what a caller is told waits until a replica has it as well, where there are replicas. */
  async #sendOver(client: RedisClient, command: CommandWords, isKept: boolean, asBytes?: boolean): Promise<unknown> {
    this.#sent += 1;
    const covered = isKept && this.#use?.client === client ? this.#use.cover?.() : undefined;
    // A command that fails waits for no replica.
    covered?.catch(() => {});
    const reply = await client.sendCommand(command, asBytes ? asBytesOptions : undefined);
    this.#noteAnswer();
    if (covered && !(await covered)) throw new MissingReplica();
    return reply;
  }

  /** Gives up a connection after a timeout, unless other answers still arrive; its pending commands fail. */
  suspect(client: RedisClient, why: RedisTimeout): void {
    if (performance.now() - this.#answeredAt < this.timeoutMs) return;
    this.forget(client)?.broke(why);
    client.destroy();
  }

  /** Has the node looked up again which has the record; the old connection still receives its pending answers. */
  leave(client: RedisClient): void {
    this.forget(client)?.leave();
  }

  forget(client: RedisClient): Use | undefined {
    const use = this.#use;
    if (use?.client !== client) return undefined;
    this.#use = undefined;
    this.#arrival = Promise.withResolvers();
    return use;
  }

  #noteAnswer(): void {
    this.#answeredAt = performance.now();
  }
}

/** Returns what runs a script; one that Redis found too late is run again while its caller waits. */
export function makeEval(sender: CallSender, clock: RedisClock) {
  return (
    lua: string,
    sha: string,
    keys: readonly string[],
    args: readonly (string | Buffer)[],
    { isKept, withinMs, asBytes }: EvalOptions = {},
  ): Promise<unknown> =>
    sender.make(async (call) => {
      if (withinMs !== undefined) await sender.present();
      for (;;) {
        const latest = clock.now() + Math.floor(call.endsAt - performance.now());
        const command = ['EVALSHA', sha, String(keys.length), ...keys, String(latest), ...args];
        const carrying = () => ['EVAL', lua, ...command.slice(2)];
        const reply = await sender.send(call, command, { carrying, isKept, asBytes });
        if (!Array.isArray(reply) || String(reply[0]) !== 'late') return reply;
        // It did nothing. The clock of Redis may have jumped, or this process was too busy to send it in time.
        await clock.read(() => sender.send(call, ['TIME']));
        if (performance.now() >= call.endsAt) throw new RedisTimeout();
      }
    }, withinMs);
}

/** True for errors of a Redis that is away; false when a command or a reply is wrong. */
function meansAway(error: unknown): boolean {
  if (isReply(error)) return isReply(error, busy);
  return !(error instanceof Refusal || error instanceof TypeError);
}

/** A command of the call was sent, and Redis neither answered nor refused it: it may have run. */
function isLost({ client, error }: PendingCall, cause: unknown): boolean {
  return client !== undefined && error === undefined && !isReply(cause) && !(cause instanceof MissingReplica);
}

export function unavailable(cause: unknown, sentence?: string, call?: PendingCall): Refusal {
  const Kind = call && isLost(call, cause) ? LostAnswer : Refusal;
  return Object.assign(new Kind('unavailable', sentence, retryAfterSeconds), { cause, part: 'redis' as const });
}
