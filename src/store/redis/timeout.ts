/** Redis did not answer in time. */
export class RedisTimeout extends Error {
  constructor(milliseconds = timeoutMs) {
    super(`No answer within ${Math.round(milliseconds)} ms`);
  }
}

export const timeoutMs = 1_500;
/** Begins when the first timer has run: a process that was too busy to read an answer still gets this long for it. */
const lastPartMs = 300;

export function withTimeout<T>(promise: Promise<T>, milliseconds = timeoutMs): Promise<T> {
  const { promise: result, resolve, reject } = Promise.withResolvers<T>();
  let timer = setTimeout(() => {
    timer = setTimeout(() => reject(new RedisTimeout(milliseconds)), lastPartMs);
  }, milliseconds - lastPartMs);
  promise.then(resolve, reject).finally(() => clearTimeout(timer));
  return result;
}
