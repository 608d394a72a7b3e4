import { type AttemptStage, isAttemptStage, maxStages, type StageTime } from '../model/attempt-stages.ts';

/** Measures how long each stage of an attempt takes. */
export interface StageClock {
  /** Begins a stage unless it is the present one; words that are no stage belong to the present one. */
  enter(word: string): void;
  /** Returns the stages so far, the last one until now. */
  times(): readonly StageTime[];
}

export function startStageClock(now = (): number => performance.now()): StageClock {
  const begun: { readonly stage: AttemptStage; readonly at: number }[] = [];
  return {
    enter(word) {
      const isNew = isAttemptStage(word) && begun.at(-1)?.stage !== word;
      if (isNew && begun.length < maxStages) begun.push({ stage: word, at: now() });
    },
    times() {
      const present = now();
      return begun.map(({ stage, at }, n) => ({ stage, ms: Math.round((begun[n + 1]?.at ?? present) - at) }));
    },
  };
}
