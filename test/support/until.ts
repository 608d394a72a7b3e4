import { setTimeout as pause } from 'node:timers/promises';

/** The limit of a wait ends a hang and judges no speed: a machine that does other work may need several times as long. */
const slowMachineFactor = 6;
/** Between two questions a twentieth of the wait so far passes, within these limits: what waits for long leaves the processors to what it waits for. */
const pauseMs = { least: 10, most: 50 };
/** A halt of this process counts as so much: what it waits for may have come meanwhile, or was halted with it. */
const maxCountMs = 1_000;

/** Asks again and again and returns the first truthy answer of `condition`; throws after 6 × `seconds`, naming `what`. */
export async function until<T>(
  condition: () => T | Promise<T>,
  seconds: number,
  what: string | (() => string),
): Promise<T> {
  const limitSeconds = seconds * slowMachineFactor;
  let [waitedMs, countedAt] = [0, performance.now()];
  const count = () => {
    const now = performance.now();
    waitedMs += Math.min(now - countedAt, maxCountMs);
    countedAt = now;
  };
  // Counts while a condition is slow to answer, which is no halt.
  const timer = setInterval(count, pauseMs.most).unref();
  try {
    for (;;) {
      const answer = await condition();
      if (answer) return answer;
      count();
      if (waitedMs >= limitSeconds * 1000) {
        throw new Error(`Not within ${limitSeconds} s: ${typeof what === 'string' ? what : what()}`);
      }
      await pause(Math.min(pauseMs.most, Math.max(pauseMs.least, waitedMs / 20)));
    }
  } finally {
    clearInterval(timer);
  }
}
