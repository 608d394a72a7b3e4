/** Redis did not answer in time. */
export class Late extends Error {
  constructor(milliseconds = limitMs) {
    super(`No answer within ${Math.round(milliseconds)} ms`);
  }
}

/** How long an answer is waited for. */
export const limitMs = 1_500;
const lastPartMs = 300;

/** Answers what a promise does, or throws `Late`. */
export async function inTime<T>(promise: Promise<T>, milliseconds = limitMs): Promise<T> {
  const late = Promise.withResolvers<never>();
  // The last part begins only when this process is free: it may itself have been too busy to send or to read.
  let timer = setTimeout(() => {
    timer = setTimeout(() => late.reject(new Late(milliseconds)), lastPartMs);
  }, milliseconds - lastPartMs);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
