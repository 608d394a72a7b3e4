import { shareRun } from './single-flight.ts';

/** A look that is repeated; `wake` looks at once. */
export interface RepeatedLook {
  wake(): Promise<void>;
  close(): Promise<void>;
}

/** Repeats a look, one at a time; a look that fails is told of and repeated. `isClosing` tells it to begin nothing more. */
export function repeatLook(
  look: (isClosing: () => boolean) => Promise<void>,
  lookMs: number,
  failed: (error: unknown) => void,
): RepeatedLook {
  let isClosing = false;
  const flight = shareRun(() => look(() => isClosing).catch(failed));
  const timer = setInterval(() => void flight.run(), lookMs);
  return {
    wake: flight.run,
    async close() {
      isClosing = true;
      clearInterval(timer);
      await flight.settled();
    },
  };
}
