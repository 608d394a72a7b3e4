import { setTimeout as pause } from 'node:timers/promises';

/** The limit of a wait ends a hang and judges no speed: a machine that does other work may need several times as long. */
const slowMachineFactor = 6;

/** Asks every 10 ms and returns the first truthy answer of `condition`; throws after 6 × `seconds`, naming `what`. */
export async function until<T>(
  condition: () => T | Promise<T>,
  seconds: number,
  what: string | (() => string),
): Promise<T> {
  const limitSeconds = seconds * slowMachineFactor;
  const end = performance.now() + limitSeconds * 1000;
  for (;;) {
    const answer = await condition();
    if (answer) return answer;
    if (performance.now() >= end) {
      throw new Error(`Not within ${limitSeconds} s: ${typeof what === 'string' ? what : what()}`);
    }
    await pause(10);
  }
}
