/** Redis did not answer in time. */
export class RedisTimeout extends Error {
  constructor(milliseconds = timeoutMs) {
    super(`No answer within ${Math.round(milliseconds)} ms`);
  }
}

export const timeoutMs = 1_500;
/** Begins when the first timer has run: a process that was too busy to read an answer still gets this long for it. */
const lastPartMs = 300;

/** Returns what a promise gives, or throws `RedisTimeout`. */
export async function withTimeout<T>(promise: Promise<T>, milliseconds = timeoutMs): Promise<T> {
  const expired = Promise.withResolvers<never>();
  let timer = setTimeout(() => {
    timer = setTimeout(() => expired.reject(new RedisTimeout(milliseconds)), lastPartMs);
  }, milliseconds - lastPartMs);
  try {
    return await Promise.race([promise, expired.promise]);
  } finally {
    clearTimeout(timer);
  }
}
