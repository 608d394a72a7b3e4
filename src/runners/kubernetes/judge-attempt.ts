import type { Seen } from '../../model/next.ts';
import { type Outcome, readVerdict } from '../../model/outcome.ts';
import { outcomeOfExitCode } from '../runner.ts';
import type { Shape } from './job-manifest.ts';
import { explainJob, explainPod } from './pending-reason.ts';
import type { LiveJob, LivePod } from './snapshot.ts';

/** What there is of one attempt. */
export interface Remains {
  readonly job: LiveJob | null;
  readonly pods: readonly LivePod[];
  /** What the cluster said when it could not make the pod, oldest first. */
  readonly said: readonly string[];
}

export interface Judged {
  readonly seen: Seen;
  /** Whether it holds although what is known may be a little old: what is there was there, what is missing proves nothing. */
  readonly isProved: boolean;
  /** What a person must look at. */
  readonly alarm: string | null;
}

/** What the operator says of how long pods may be without what they need. */
type Patience = Pick<Shape, 'queue' | 'awaySeconds' | 'startSeconds'>;

/** A pod that was told to leave and has not is nobody's any more: its node may be dead. */
export const leaveMilliseconds = 3_000;
/** Where most nodes are away at once the cluster takes no pod away: then it is lost so long after it should have been. */
const lateMilliseconds = 120_000;

/** Says how an attempt stands. Its pod's last phase is the end; the Job's own end, or a deletion, is one too. */
export function judge(remains: Remains, patience: Patience, now: number): Judged {
  const { job, pods, said } = remains;
  const pod =
    pods.find(({ phase }) => phase === 'Succeeded') ?? pods.find((one) => !isTerminal(one)) ?? pods[0] ?? null;
  if (pod && isTerminal(pod)) {
    const seen: Seen = { is: 'ended', outcome: outcomeOfPod(pod, job) };
    // Of a pod that was taken away without a word, its Job may say why: the two are watched apart.
    const isSilent = pod.deletedAt !== null && pod.disruption === null && !wordOf(pod);
    return isSilent ? unproved(seen) : proved(seen);
  }
  if (!job && !pod) return unproved({ is: 'absent' });
  const over = whyOver(job, pod, patience, now);
  if (over) return unproved({ is: 'ended', outcome: over });
  if (pod && pod.phase !== 'Pending') return proved({ is: 'running' });
  const wait = pod ? explainPod(pod, patience, now) : explainJob(job?.isSuspended ?? false, said);
  if (!wait.outcome) return proved({ is: 'waiting', reason: wait.reason });
  return { ...unproved({ is: 'ended', outcome: wait.outcome }), alarm: alarmOf(pod, said) };
}

export function isTerminal({ phase }: LivePod): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}

/** Why an attempt is over whose pod has not ended, or is not there. */
function whyOver(job: LiveJob | null, pod: LivePod | null, patience: Patience, now: number): Outcome | null {
  if (isLate(job, pod)) return { is: 'failed', code: 'timeout' };
  if (job?.over) return interrupted(pod ? (pod.disruption ?? 'its pod was deleted') : 'its pod is gone');
  if (!job) return interrupted('its Job is gone');
  if (job.deletedAt !== null) return interrupted('its Job was deleted');
  if (!pod) return null;
  const isPast = (time: number | null, milliseconds: number) => time !== null && now - time >= milliseconds;
  if (isPast(pod.deletedAt, leaveMilliseconds)) return interrupted(pod.disruption ?? 'its pod was deleted');
  const isLost = isPast(pod.unheardSince, patience.awaySeconds * 1000 + lateMilliseconds);
  return isLost ? interrupted('nothing is heard of its node') : null;
}

/** Whether the cluster ended it for its time. It takes the pod away before it says so. */
function isLate(job: LiveJob | null, pod: LivePod | null): boolean {
  if (job?.over?.reason === 'DeadlineExceeded') return true;
  return typeof job?.deadline === 'number' && typeof pod?.deletedAt === 'number' && pod.deletedAt >= job.deadline;
}

/** How the worker of a pod in its last phase ended. What it said itself counts first: the object store judges the rest. */
function outcomeOfPod(pod: LivePod, job: LiveJob | null): Outcome {
  const { exit, reason, disruption } = pod;
  const said = wordOf(pod);
  if (said) return said;
  if (reason === 'DeadlineExceeded' || isLate(job, pod)) return { is: 'failed', code: 'timeout' };
  if (disruption !== null) return interrupted(disruption);
  // Without a disruption the kubelet evicts for the pod's own limit of disk.
  if (reason === 'Evicted') return { is: 'failed', code: 'file_too_large' };
  if (reason !== '' || !exit) return interrupted(reason || 'its node did not run it');
  if (exit.reason === 'OOMKilled') return { is: 'failed', code: 'worker_failed' };
  return outcomeOfExitCode(exit.code);
}

/** What the worker itself left of its work. That it was told to stop says nothing of why: the cluster does. */
function wordOf({ exit }: LivePod): Outcome | null {
  try {
    const said = readVerdict(JSON.parse(exit?.message ?? ''));
    return said?.is === 'interrupted' ? null : said;
  } catch {
    // None, cut off, or the kubelet's own words: the exit code speaks.
    return null;
  }
}

function alarmOf(pod: LivePod | null, said: readonly string[]): string {
  const cause = pod?.unscheduled ?? pod?.waits;
  return cause ? `${cause.reason}: ${cause.message}` : (said.at(-1) ?? '');
}

function interrupted(reason: string): Outcome {
  return { is: 'interrupted', reason };
}

function proved(seen: Seen): Judged {
  return { seen, isProved: true, alarm: null };
}

function unproved(seen: Seen): Judged {
  return { seen, isProved: false, alarm: null };
}
