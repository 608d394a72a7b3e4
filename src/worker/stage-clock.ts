import { type AttemptStage, isAttemptStage, maxStages, type StageTime } from '../model/attempt-stages.ts';

export type StageClock = ReturnType<typeof startStageClock>;

/** Measures how long each stage of an attempt takes. */
export function startStageClock(now = (): number => performance.now()) {
  const begun: { readonly stage: AttemptStage; readonly at: number }[] = [];
  return {
    /** Begins a stage unless it is the present one; words that are no stage belong to the present one. */
    enter(word: string): void {
      const isNew = isAttemptStage(word) && begun.at(-1)?.stage !== word;
      if (isNew && begun.length < maxStages) begun.push({ stage: word, at: now() });
    },
    /** Returns the stages so far, the last one until now. */
    times(): readonly StageTime[] {
      const present = now();
      return begun.map(({ stage, at }, n) => ({ stage, ms: Math.round((begun[n + 1]?.at ?? present) - at) }));
    },
  };
}
