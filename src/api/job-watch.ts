import { refuse } from '../base/errors.ts';
import { channels } from '../store/keys.ts';
import type { RecordStore } from '../store/script.ts';

/** A subscription to the changes of one job. */
export interface JobWatch {
  /** Resolves at the next change, at once when one came since the last call, or after this time. */
  changed(maxMs: number): Promise<void>;
  close(): void;
}

export type WatchJob = (jobId: string) => Promise<JobWatch>;

interface Subscription {
  readonly listeners: Set<() => void>;
  readonly unsubscribe: Promise<() => Promise<void>>;
}

const maxWatches = 10_000;

/** Returns a function that watches jobs over one Redis subscription per job. When the process drains, all watches wake up. */
export function makeJobWatches(store: RecordStore, draining: AbortSignal): WatchJob {
  const subscriptions = new Map<string, Subscription>();
  let open = 0;
  draining.addEventListener('abort', () => {
    for (const { listeners } of subscriptions.values()) for (const listener of listeners) listener();
  });

  const subscribe = (jobId: string): Subscription => {
    const listeners = new Set<() => void>();
    const unsubscribe = store.connection.subscribe(channels.job(jobId), () => {
      for (const listener of listeners) listener();
    });
    // Each watch awaits it and throws the error there.
    unsubscribe.catch(() => subscriptions.delete(jobId));
    const subscription = { listeners, unsubscribe };
    subscriptions.set(jobId, subscription);
    return subscription;
  };

  return async (jobId) => {
    if (open >= maxWatches || draining.aborted) throw refuse('unavailable');
    open++;
    const subscription = subscriptions.get(jobId) ?? subscribe(jobId);
    const { listeners, unsubscribe } = subscription;
    const { hint, changed } = makeFlag();
    listeners.add(hint);
    const close = () => {
      if (listeners.delete(hint)) open--;
      // Nothing comes any more, so nobody may wait for it.
      hint();
      if (listeners.size > 0 || subscriptions.get(jobId) !== subscription) return;
      subscriptions.delete(jobId);
      // A subscription that cannot be ended only brings hints without a listener.
      unsubscribe.then((end) => end()).catch(() => {});
    };
    await unsubscribe.catch((error) => {
      close();
      throw error;
    });
    return { close, changed };
  };
}

/** Makes a flag that `hint` sets, and that `changed` waits for and clears. */
function makeFlag(): { readonly hint: () => void; readonly changed: JobWatch['changed'] } {
  let isSet = false;
  let resume: (() => void) | null = null;
  return {
    hint() {
      isSet = true;
      resume?.();
    },
    async changed(maxMs) {
      if (!isSet) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, maxMs);
          resume = () => {
            clearTimeout(timer);
            resolve();
          };
        });
        resume = null;
      }
      isSet = false;
    },
  };
}
