import { expect } from 'chai';
import type { Seen } from '../../src/model/next.ts';
import type { Outcome } from '../../src/model/outcome.ts';
import { judgeAttempt } from '../../src/runners/kubernetes/judge-attempt.ts';
import { readJobSnapshot, readPodSnapshot } from '../../src/runners/kubernetes/snapshot.ts';
import { aRawJob, aRawPod, begun } from './cluster-objects.ts';

/** The Job, the pods and the events of an attempt, and the judgement expected of them. */
export interface Row {
  readonly job?: Parameters<typeof aRawJob>[0] | null;
  readonly pods?: readonly Parameters<typeof aRawPod>[0][];
  readonly said?: readonly string[];
  readonly seconds?: number;
  /** Second at which a quota was used up for the last time. */
  readonly quotaSecond?: number;
  /** A queue of the cluster admits the pods. */
  readonly queue?: string;
  readonly alarm?: string;
  readonly seen: Seen;
  /** Where what is known may be too old to act upon; an alarm is read too. */
  readonly isRead?: true;
}

export const waiting = (reason: string | null): Seen => ({ is: 'waiting', reason });
export const failed = (code: (Outcome & { is: 'failed' })['code'], text?: string): Seen => {
  return { is: 'ended', outcome: { is: 'failed', code, ...(text && { text }) } };
};
/** Fails before the worker ran. */
export const givenUp = (...why: Parameters<typeof failed>): Seen => ({ ...failed(...why), neverRan: true }) as Seen;

/** Tests each row. */
export function judgeRows(rows: Readonly<Record<string, Row>>): void {
  for (const [title, row] of Object.entries(rows)) {
    it(title, () => {
      const judged = judgeAttempt(
        {
          job: row.job === null ? null : readJobSnapshot(aRawJob(row.job)),
          pods: (row.pods ?? []).map((pod) => readPodSnapshot(aRawPod(pod))),
          faults: row.said ?? [],
          quotaAt: row.quotaSecond === undefined ? null : begun + row.quotaSecond * 1000,
        },
        { queue: row.queue ?? null, awaySeconds: 60, startSeconds: 180 },
        begun + (row.seconds ?? 1) * 1000,
      );
      expect(judged.seen).to.deep.equal(row.seen);
      expect(judged.isCertain).to.equal(!row.isRead && !row.alarm);
      expect(judged.alarm).to.equal(row.alarm ?? null);
    });
  }
}
