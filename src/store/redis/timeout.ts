/** Redis did not answer in time. */
export class RedisTimeout extends Error {
  constructor(milliseconds = timeoutMs) {
    super(`No answer within ${Math.round(milliseconds)} ms`);
  }
}

export const timeoutMs = 1_500;
/** Begins when the first timer has run: a process that was too busy to read an answer still gets this long for it. */
const lastPartMs = 300;

/**
 * Rejects with `RedisTimeout` when a promise is not settled in time. `onLastPart` is told when that is, by `performance.now`:
 * later than planned in a process that was busy.
 */
export function withTimeout<T>(
  promise: Promise<T>,
  milliseconds = timeoutMs,
  onLastPart = (_endsAt: number): void => {},
): Promise<T> {
  const { promise: result, resolve, reject } = Promise.withResolvers<T>();
  let timer = setTimeout(() => {
    timer = setTimeout(() => reject(new RedisTimeout(milliseconds)), lastPartMs);
    onLastPart(performance.now() + lastPartMs);
  }, milliseconds - lastPartMs);
  promise.then(resolve, reject).finally(() => clearTimeout(timer));
  return result;
}
