import { refuse } from '../base/errors.ts';
import { channels } from '../store/keys.ts';
import type { RecordStore } from '../store/script.ts';

/** Hears of the changes of one job until it is closed. */
export interface Watch {
  /** Resolves at the next change, at once when there was one since it was asked last, or after some milliseconds. */
  changed(milliseconds: number): Promise<void>;
  close(): void;
}

const watchesMost = 10_000;

/** Watches jobs: a replica listens only for those that somebody watches, once each. When it drains, all are woken. */
export function makeWatches(store: RecordStore, draining: AbortSignal): (job: string) => Promise<Watch> {
  const heard = new Map<string, { wake: Set<() => void>; end: Promise<() => Promise<void>> }>();
  draining.addEventListener('abort', () => {
    for (const { wake } of heard.values()) for (const one of wake) one();
  });

  const listen = (job: string) => {
    const wake = new Set<() => void>();
    const end = store.connection.subscribe(channels.job(job), () => {
      for (const one of wake) one();
    });
    // Whoever watches awaits it and hears of the failure there.
    end.catch(() => heard.delete(job));
    heard.set(job, { wake, end });
    return { wake, end };
  };

  let open = 0;
  return async (job) => {
    if (open >= watchesMost || draining.aborted) throw refuse('unavailable');
    open++;
    const { wake, end } = heard.get(job) ?? listen(job);
    let isDirty = false;
    let resume: (() => void) | null = null;
    const hint = () => {
      isDirty = true;
      resume?.();
    };
    wake.add(hint);
    const close = () => {
      if (wake.delete(hint)) open--;
      // Nothing is to come any more, so nobody is to wait for it.
      hint();
      if (wake.size > 0 || heard.get(job)?.wake !== wake) return;
      heard.delete(job);
      // A subscription that cannot be ended only brings hints that nobody hears.
      end.then((unsubscribe) => unsubscribe()).catch(() => {});
    };
    await end.catch((error) => {
      close();
      throw error;
    });
    return {
      close,
      async changed(milliseconds) {
        if (!isDirty) {
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, milliseconds);
            resume = () => {
              clearTimeout(timer);
              resolve();
            };
          });
          resume = null;
        }
        isDirty = false;
      },
    };
  };
}
