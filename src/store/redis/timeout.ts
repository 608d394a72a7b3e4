/** Redis did not answer in time. */
export class Late extends Error {
  constructor(milliseconds = limitMs) {
    super(`No answer within ${Math.round(milliseconds)} ms`);
  }
}

/** How long an answer is waited for. */
export const limitMs = 1_500;
const lastPartMs = 300;
const tickMs = 20;

interface Wait {
  /** When its present part ends. */
  until: number;
  isLastPart: boolean;
  readonly giveUp: () => void;
}

/** One timer looks at all: one for each would cost more than what it guards. */
const waits = new Set<Wait>();
let isTicking = false;

/** Answers what a promise does, or throws `Late`. */
export function inTime<T>(promise: Promise<T>, milliseconds = limitMs): Promise<T> {
  return new Promise((resolve, reject) => {
    const until = performance.now() + milliseconds - lastPartMs;
    const wait: Wait = { until, isLastPart: false, giveUp: () => reject(new Late(milliseconds)) };
    waits.add(wait);
    if (!isTicking) setTimeout(tick, tickMs);
    isTicking = true;
    promise.then(
      (value) => {
        waits.delete(wait);
        resolve(value);
      },
      (error) => {
        waits.delete(wait);
        reject(error);
      },
    );
  });
}

function tick(): void {
  const now = performance.now();
  for (const wait of waits) {
    if (now < wait.until) continue;
    if (wait.isLastPart) {
      waits.delete(wait);
      wait.giveUp();
    }
    // The last part begins only when this process is free: it may itself have been too busy to send or to read.
    wait.until = now + lastPartMs;
    wait.isLastPart = true;
  }
  isTicking = waits.size > 0;
  if (isTicking) setTimeout(tick, tickMs);
}
