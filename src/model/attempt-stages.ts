import { isJsonObject } from '../base/parse-json.ts';

/** Stage in which a worker records a live source, which it could not do again. */
export const recordingStage = 'record';

/** Stages of an attempt in their order; each begins with another letter. */
const attemptStages = ['inspect', 'fetch', recordingStage, 'convert', 'prove', 'upload'] as const;
export type AttemptStage = (typeof attemptStages)[number];

/** Stage of an attempt and how long it took, or takes so far. */
export interface StageTime {
  readonly stage: AttemptStage;
  readonly ms: number;
}

export interface StageMark extends StageTime {
  readonly at: number;
}

/** Most stages of an attempt: one that begins anew, because its cut failed, has them twice. */
export const maxStages = 12;
const maxStageMs = 10 ** 9;
const writtenForm = /([a-z])(\d+)/g;

export function isAttemptStage(word: unknown): word is AttemptStage {
  return attemptStages.some((stage) => stage === word);
}

/** Checks what a worker says of its stages; `null` for what no worker of ours says. */
export function readStageTimes(said: unknown): readonly StageTime[] | null {
  if (!Array.isArray(said) || said.length > maxStages) return null;
  const fits = ({ stage, ms }: Partial<StageTime>) =>
    isAttemptStage(stage) && Number.isInteger(ms) && Number(ms) >= 0 && Number(ms) <= maxStageMs;
  const isEach = said.every((one) => isJsonObject(one) && fits(one));
  return isEach ? said.map(({ stage, ms }: StageTime) => ({ stage, ms })) : null;
}

/** Writes stages as the record keeps them: of each its first letter and its milliseconds, such as `i320f8401`. */
export function writeStages(times: readonly StageTime[]): string {
  return times.map(({ stage, ms }) => stage.charAt(0) + ms).join('');
}

export function msOf(times: readonly StageTime[]): number {
  return times.reduce((sum, { ms }) => sum + ms, 0);
}

export function readStages(written: string): StageTime[] {
  return [...written.matchAll(writtenForm)].flatMap(([, letter, ms]) => {
    const stage = attemptStages.find((one) => one.startsWith(letter ?? ''));
    return stage === undefined ? [] : [{ stage, ms: Number(ms) }];
  });
}
