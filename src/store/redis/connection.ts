import type { Log } from '../../base/log.ts';
import { Caller } from './command-sender.ts';
import { readListenAddress } from './discovery.ts';
import { Channels, type Listener } from './subscriptions.ts';

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
 * The way to the record. Every call answers, or fails with `unavailable` and its cause, within two seconds. A command whose
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
  /** Calls the listener with each message from now on, but for those sent while Redis is away. Answers how to end that. */
  subscribe(channel: string, listener: Listener): Promise<() => Promise<void>>;
  /** Whether Redis can be reached, as far as is known. */
  ready(): boolean;
  /** How many commands were sent. */
  calls(): number;
  /** Ends it, after what is under way. */
  close(): Promise<void>;
}

/** Connects to Redis, and again whenever that is lost; fails when Redis does not answer at first. */
export async function connect(url: string, { log }: { readonly log: Log }): Promise<Connection> {
  const place = readListenAddress(url);
  const caller = new Caller(place, log);
  await caller.open();
  let channels: Channels | undefined;
  return {
    eval: (lua, sha, keys, args) => {
      const command = ['EVALSHA', sha, String(keys.length), ...keys, ...args];
      const carrying = () => ['EVAL', lua, ...command.slice(2)];
      return caller.make((call) => caller.send(call, command, carrying));
    },
    read: (command) => caller.make((call) => caller.send(call, command)),
    readAll: (commands) => caller.make((call) => Promise.all(commands.map((command) => caller.send(call, command)))),
    send: (command) => caller.make((call) => caller.send(call, command)),
    subscribe: (channel, listener) =>
      caller.make(async (call) => {
        if (!caller.isReady()) throw new Error('There is no connection');
        channels ??= new Channels(place, log);
        const end = await channels.subscribe(channel, listener);
        if (call.isOver) await end();
        return () => caller.make(end);
      }),
    ready: () => caller.isReady(),
    calls: () => caller.sent(),
    close: async () => {
      await Promise.all([caller.close(), channels?.close()]);
    },
  };
}
