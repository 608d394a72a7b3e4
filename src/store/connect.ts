import { Refusal, refuse } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { type Channels, type Listener, openChannels } from './channels.ts';
import { type Client, isReply } from './client.ts';
import { openLink } from './link.ts';
import { readPlace } from './place.ts';

/**
 * The way to the record. Every call answers, or fails with `unavailable` and its cause, within two seconds. A command whose
 * answer was lost may have run; it is never sent again. Replies are strings, numbers, `null`, and lists of these.
 */
export interface Connection {
  /** Runs a script, by its hash where Redis knows it already. */
  eval(lua: string, sha: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /** Sends one command that touches this key. */
  read(command: readonly string[], key: string): Promise<unknown>;
  /** Sends commands in one go. Fails when one of them fails; the others may have run. */
  batch(commands: readonly { key: string; command: readonly string[] }[]): Promise<unknown[]>;
  /** Calls the listener with each message from now on, but for those sent while Redis is away. Answers how to end that. */
  subscribe(channel: string, listener: Listener): Promise<() => Promise<void>>;
  /** Whether Redis answered when it was last asked. */
  ready(): boolean;
  /** How many commands were sent. */
  calls(): number;
  /** Ends it, after what is under way. */
  close(): Promise<void>;
}

/** One call that is under way. */
interface Call {
  isOver: boolean;
  client?: Client;
}

const callMs = 1_500;
const retryAfterSeconds = 2;
/** What Redis answers when it cannot do it now. */
const busy = /^(LOADING|READONLY|MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|MISCONF|OOM|BUSY)\b/;
/** What it answers when it did nothing and another node is to be asked. */
const elsewhere = /^(READONLY|MOVED|CLUSTERDOWN|MASTERDOWN)\b/;

/** Connects to Redis, and again whenever that is lost; fails when it does not answer at first. */
export async function connect(url: string, { log }: { readonly log: Log }): Promise<Connection> {
  const place = readPlace(url);
  let sent = 0;
  let answeredAt = 0;
  let channels: Channels | undefined;
  const noteAnswer = (): void => {
    answeredAt = performance.now();
  };
  const link = openLink(place, log, async () => noteAnswer());

  const send = async (call: Call, command: readonly string[]): Promise<unknown> => {
    call.client = link.client();
    if (!call.client) throw link.cause() ?? new Error('There is no connection');
    for (;;) {
      sent += 1;
      try {
        const reply = await call.client.sendCommand(command);
        noteAnswer();
        return reply;
      } catch (error) {
        if (isReply(error)) noteAnswer();
        if (!isReply(error, elsewhere)) throw error;
        if (isReply(error, /^MOVED/)) place.moved();
        link.leave(call.client);
        call.client = await link.present();
        if (call.isOver) throw error;
      }
    }
  };
  const giveUp = (call: Call, error: Error): void => {
    // A connection that answered others meanwhile is slow; one that did not is dead.
    if (call.client && performance.now() - answeredAt >= callMs) link.drop(call.client, error);
  };
  const limited = <T>(work: (call: Call) => Promise<T>): Promise<T> => limit(work, giveUp);

  await limited(link.present).catch(() => {
    void link.close();
    throw unavailable(link.cause(), `Redis cannot be reached at ${place.name}`);
  });
  return {
    eval: (lua, sha, keys, args) =>
      limited(async (call) => {
        const input = [String(keys.length), ...keys, ...args];
        try {
          return await send(call, ['EVALSHA', sha, ...input]);
        } catch (error) {
          if (!isReply(error, /^NOSCRIPT/) || call.isOver) throw error;
          return send(call, ['EVAL', lua, ...input]);
        }
      }),
    read: (command) => limited((call) => send(call, command)),
    batch: (commands) => limited((call) => Promise.all(commands.map(({ command }) => send(call, command)))),
    subscribe: (channel, listener) =>
      limited(async (call) => {
        channels ??= openChannels(place, log);
        const end = await channels.subscribe(channel, listener);
        if (call.isOver) await end();
        return () => limited(end);
      }),
    ready: () => link.client() !== undefined,
    calls: () => sent,
    close: async () => {
      await Promise.all([link.close(), channels?.close()]);
    },
  };
}

/** Gives a call its time. */
function limit<T>(work: (call: Call) => Promise<T>, giveUp: (call: Call, error: Error) => void): Promise<T> {
  const call: Call = { isOver: false };
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const fail = (): void => {
    if (call.isOver) return;
    call.isOver = true;
    const error = new Error(`No answer within ${callMs} ms`);
    giveUp(call, error);
    reject(unavailable(error));
  };
  // First what has arrived is read: it may be this process that was busy.
  const timer = setTimeout(() => setImmediate(fail), callMs);
  const settle = (): void => {
    call.isOver = true;
    clearTimeout(timer);
  };
  work(call).then(
    (value) => {
      settle();
      resolve(value);
    },
    (error) => {
      settle();
      reject(isExpected(error) ? unavailable(error) : error);
    },
  );
  return promise;
}

/** Whether an error means that Redis is away, and not that a command or a reply is wrong. */
function isExpected(error: unknown): boolean {
  if (isReply(error)) return isReply(error, busy);
  return !(error instanceof Refusal || error instanceof TypeError);
}

function unavailable(cause: unknown, sentence?: string): Refusal {
  const reason = sentence && cause instanceof Error ? `${sentence}: ${cause.message}` : sentence;
  return Object.assign(refuse('unavailable', reason, retryAfterSeconds), { cause });
}
