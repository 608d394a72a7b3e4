import { refuse, refuseWithout } from '../base/errors.ts';
import { hasBrokenOff } from '../base/http-client.ts';
import type { InspectionFailure } from '../model/inspection-result.ts';
import type { KeyedCall } from './api-call.ts';
import { onLeave } from './on-leave.ts';

export interface InspectionLimits {
  readonly inspectSeconds: number;
  /** Aborted shortly before a process that stops cuts its connections. */
  readonly ending: AbortSignal;
}

/** The sentence of the failure speaks of a job, which this caller does not have. */
const readTooLong = 'Reading the source took longer than its time limit';

/** Asks the inspector until the time limit; the question ends when the caller has gone, and with a 503 when the process ends before. */
export async function askWithin<T>(
  { inspectSeconds, ending }: InspectionLimits,
  { res }: KeyedCall,
  ask: (gone: AbortSignal) => Promise<T>,
): Promise<T | InspectionFailure> {
  const gone = new AbortController();
  const forget = onLeave(res, () => gone.abort());
  // A caller who left while the call was admitted is not heard of again.
  if (res.destroyed) gone.abort();
  const limit = AbortSignal.timeout(inspectSeconds * 1000);
  try {
    return await ask(AbortSignal.any([gone.signal, ending, limit]));
  } catch (error) {
    if (limit.aborted) return { failure: { code: 'timeout', text: readTooLong } } as const;
    if (ending.aborted) throw refuse('unavailable');
    throw hasBrokenOff(error) ? refuseWithout('inspector', error) : error;
  } finally {
    forget();
  }
}
