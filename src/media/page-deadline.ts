import { Failed } from './tools.ts';

/** A signal that its owner may fire with a reason. */
export type Endable = ReturnType<typeof endable>;

/** Returns a signal that fires with the given one, or at `end` with its reason. */
export function endable(signal: AbortSignal) {
  const own = new AbortController();
  return { signal: AbortSignal.any([signal, own.signal]), end: (reason: Failed) => own.abort(reason) };
}

/** Awaits the page; ends the program that reads it after so many seconds. */
export async function withDeadline<T>(answer: Promise<T>, seconds: number, end: (reason: Failed) => void): Promise<T> {
  const late = () => end(new Failed('timeout', `no answer of the page in ${seconds} s`));
  using _timer = setTimeout(late, seconds * 1000);
  return await answer;
}
