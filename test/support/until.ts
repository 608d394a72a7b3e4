import { setTimeout as pause } from 'node:timers/promises';

/** Asks every 10 ms and answers what `condition` answered once that holds; throws a sentence naming `what` after `seconds`. */
export async function until<T>(condition: () => T | Promise<T>, seconds: number, what: string): Promise<T> {
  const end = performance.now() + seconds * 1000;
  for (;;) {
    const answer = await condition();
    if (answer) return answer;
    if (performance.now() >= end) throw new Error(`Not within ${seconds} s: ${what}`);
    await pause(10);
  }
}
