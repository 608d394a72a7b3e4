import { refuse } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { shareRun } from '../base/single-flight.ts';
import { leaseMs, noteEveryMs } from '../model/record-layout.ts';
import { layouts, moveLayout, prepareSchema } from './schema.ts';
import type { RecordStore, ReleaseLease } from './script.ts';

/**
 * Notes the release at once, then every 10 s, and begins the layout of this release when its time has come. A process that was
 * stopped or cut off for longer than its lease looks at the record again before it changes it: another layout may have begun.
 */
export async function holdRelease(
  store: RecordStore,
  log: Log,
): Promise<ReleaseLease & { readonly close: () => Promise<void> }> {
  const opened = performance.now();
  let layout = (await prepareSchema(store)).layout;
  let refusal: string | null = null;
  const note = shareRun(async () => {
    const began = performance.now();
    const state = await prepareSchema(store).catch((error: Error) => {
      // A plain error is the sentence for which the record is refused; Redis that is away says nothing of the layout.
      if (error.constructor === Error && refusal !== error.message) log.error(error.message);
      if (error.constructor === Error) [refusal, lease.endsAt] = [error.message, 0];
      throw error;
    });
    if (refusal !== null) log.info('the record can be read again');
    refusal = null;
    lease.endsAt = began + leaseMs;
    layout = state.layout;
    if (!store.connection.clock.isSteady()) return;
    const { step } = await moveLayout(store, state, false);
    if (step !== 'sealed' || layout === layouts.own) return;
    layout = layouts.own;
    log.info('the layout of this release begins: older ones do not read the record any more', { layout });
  });
  const timer = setInterval(
    () => void note.run().catch((error) => log.debug('the release was not noted', { error })),
    noteEveryMs,
  );
  timer.unref();
  const lease = {
    endsAt: opened + leaseMs,
    layout: () => layout,
    refusal: () => refusal,
    renew: () => (refusal === null ? note.run() : Promise.reject(refuse('unavailable', refusal))),
    close: async () => {
      clearInterval(timer);
      // The note under way has told of its error.
      await note.settled().catch(() => {});
    },
  };
  return lease;
}
