import type { Log } from '../base/log.ts';
import { openLink } from './link.ts';
import type { Place } from './place.ts';

export type Listener = (message: string) => void;

/** Hears what is published, over a connection of its own. What is published while that is broken is not heard. */
export interface Channels {
  /** Calls the listener with each message from now on. Answers how to end that. */
  readonly subscribe: (channel: string, listener: Listener) => Promise<() => Promise<void>>;
  readonly close: () => Promise<void>;
}

export function openChannels(place: Place, log: Log): Channels {
  const channels = new Map<string, Set<Listener>>();
  const tell = (message: string, channel: string): void => {
    for (const listener of channels.get(channel) ?? []) {
      try {
        listener(message);
      } catch (error) {
        // It must not reach the library: that would take it for a broken connection.
        log.error('a listener failed', { channel, error });
      }
    }
  };
  const link = openLink(place, log, async (client) => {
    for (const channel of channels.keys()) await client.subscribe(channel, tell);
  });
  const remove = async (channel: string, listener: Listener): Promise<void> => {
    const listeners = channels.get(channel);
    if (!listeners?.delete(listener) || listeners.size > 0) return;
    channels.delete(channel);
    await link.client()?.unsubscribe(channel, tell);
  };
  return {
    subscribe: async (channel, listener) => {
      channels.set(channel, (channels.get(channel) ?? new Set()).add(listener));
      try {
        const client = await link.present();
        await client.subscribe(channel, tell);
      } catch (error) {
        await remove(channel, listener);
        throw error;
      }
      return () => remove(channel, listener);
    },
    close: link.close,
  };
}
