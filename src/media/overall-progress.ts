import type { AttemptProgress } from '../model/attempt-protocol.ts';

const stages = ['inspect', 'fetch', 'convert', 'prove'] as const;
type Stage = (typeof stages)[number];
/** Percent of the whole job that each stage takes; the remaining 10 are the upload's. */
const copying: Record<Stage, number> = { inspect: 3, fetch: 78, convert: 5, prove: 4 };
const encoding: Record<Stage, number> = { inspect: 3, fetch: 53, convert: 30, prove: 4 };

export type OverallProgress = ReturnType<typeof makeOverallProgress>;

/** Combines the stages into one percentage that never falls; `encodes` gives the conversion a larger share. */
export function makeOverallProgress(
  encodes: boolean,
  onProgress: (progress: AttemptProgress) => void,
  now: () => number,
) {
  const shares = encodes ? encoding : copying;
  let last: AttemptProgress = { progress: 0, stage: 'inspect', speed_bytes: null, eta_seconds: null };
  let begun: { readonly at: number; readonly bytes: number } | null = null;
  const speedOf = (bytes: number | undefined) => {
    if (bytes === undefined) return null;
    begun ??= { at: now(), bytes };
    const seconds = (now() - begun.at) / 1000;
    return seconds < 0.5 || bytes < begun.bytes ? null : Math.round((bytes - begun.bytes) / seconds);
  };
  return {
    /** Notes the progress of a stage, from 0 to 1, and for a fetch the bytes that have arrived. */
    at: (stage: Stage, fraction: number, bytes?: number) => {
      const before = stages.slice(0, stages.indexOf(stage)).reduce((sum, each) => sum + shares[each], 0);
      // ffmpeg knows no time before its first packet, which is no number then.
      const part = fraction > 0 ? Math.min(1, fraction) : 0;
      const progress = Math.max(last.progress, Math.floor(before + shares[stage] * part));
      const speed = speedOf(bytes);
      const eta = speed && bytes && part > 0 ? Math.round((bytes / part - bytes) / speed) : null;
      const next: AttemptProgress = { progress, stage, speed_bytes: speed, eta_seconds: eta };
      if (next.progress !== last.progress || stage !== last.stage || next.speed_bytes !== last.speed_bytes)
        onProgress(next);
      last = next;
    },
  };
}
