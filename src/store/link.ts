import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../base/log.ts';
import { type Client, openClient } from './client.ts';
import type { Place } from './place.ts';

/** Keeps one connection to wherever the record is, and opens the next one when it breaks. */
export interface Link {
  /** The connection, while there is one. */
  readonly client: () => Client | undefined;
  /** Waits for a connection, however long that takes. */
  readonly present: () => Promise<Client>;
  /** What went wrong last. */
  readonly cause: () => unknown;
  /** Gives up a connection that does not answer: whoever waits for an answer over it gets an error. */
  readonly drop: (client: Client, why: Error) => void;
  /** Looks anew where the record is; what the old connection has still to answer is waited for. */
  readonly leave: (client: Client) => void;
  readonly close: () => Promise<void>;
}

const shortestDelayMs = 25;
const longestDelayMs = 400;
const steadyMs = 1_000;
const drainMs = 1_000;

/** Opens a link, at first without a connection. Each connection answers PING and is prepared before it is given out. */
export function openLink(place: Place, log: Log, prepare?: (client: Client) => Promise<void>): Link {
  const closing = new AbortController();
  let current: { client: Client; leave: () => void; broke: (why: Error) => void } | undefined;
  let arrival = Promise.withResolvers<Client>();
  let cause: unknown;
  let isTold: boolean | undefined;
  let drained: Promise<unknown> = Promise.resolve();

  const forget = (client: Client): typeof current => {
    if (current?.client !== client) return undefined;
    const forgotten = current;
    current = undefined;
    arrival = Promise.withResolvers();
    return forgotten;
  };
  /** Tells a change once, however often it is tried in between. */
  const tell = (isConnected: boolean, error?: unknown): void => {
    if (isTold === isConnected) return;
    isTold = isConnected;
    if (isConnected) log.info('redis is connected', { place: place.name });
    else log.warn('redis cannot be reached', { place: place.name, error });
  };
  const useOne = async (turn: number): Promise<void> => {
    const client = await openClient(await place.find(turn));
    try {
      await client.sendCommand(['PING']);
      await prepare?.(client);
      if (!client.isReady || closing.signal.aborted) return;
      await new Promise<void>((leave, broke) => {
        client.once('terminated', broke);
        current = { client, leave, broke };
        tell(true);
        arrival.resolve(client);
      });
    } finally {
      forget(client);
      drained = drain(client);
    }
  };
  const keep = async (): Promise<void> => {
    let delayMs = shortestDelayMs;
    for (let turn = 0; !closing.signal.aborted; turn += 1) {
      const began = performance.now();
      await useOne(turn).catch((error) => {
        cause = error;
        tell(false, error);
      });
      delayMs = performance.now() - began > steadyMs ? shortestDelayMs : Math.min(delayMs * 2, longestDelayMs);
      // It ends early only because all is closed.
      await pause(delayMs, undefined, { signal: closing.signal }).catch(() => {});
    }
  };
  const kept = keep();

  return {
    client: () => current?.client,
    present: () => arrival.promise,
    cause: () => cause,
    drop: (client, why) => {
      forget(client)?.broke(why);
      client.destroy();
    },
    leave: (client) => forget(client)?.leave(),
    close: async () => {
      closing.abort();
      if (current) forget(current.client)?.leave();
      await kept;
      await drained;
    },
  };
}

/** Lets a connection receive what it still waits for, then ends it. */
async function drain(client: Client): Promise<void> {
  const limit = Promise.withResolvers<void>();
  const timer = setTimeout(limit.resolve, drainMs);
  // Closing fails when the connection is broken already: then there is nothing to wait for. It never ends when it breaks meanwhile.
  await Promise.race([client.close(), limit.promise]).catch(() => {});
  clearTimeout(timer);
  client.destroy();
}
