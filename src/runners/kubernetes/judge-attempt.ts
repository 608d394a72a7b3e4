import { parseJson } from '../../base/parse-json.ts';
import type { Seen } from '../../model/next.ts';
import { type Outcome, readVerdict } from '../../model/outcome.ts';
import { outcomeOfExitCode } from '../runner.ts';
import type { WorkerShape } from './job-manifest.ts';
import { explainMissingPod, explainPendingPod } from './pending-reason.ts';
import type { JobSnapshot, PodSnapshot } from './snapshot.ts';

export interface AttemptObjects {
  readonly job: JobSnapshot | null;
  readonly pods: readonly PodSnapshot[];
  /** Messages of the cluster about a pod that it could not create, or that its node cannot prepare, oldest first. */
  readonly faults: readonly string[];
  /** When a quota kept the Job from its pod for the last time. */
  readonly quotaAt?: number | null;
}

export interface AttemptJudgement {
  readonly seen: Seen;
  /** True when cached objects, which may be a little old, prove it: an object that a watch shows did exist, a missing one proves nothing. */
  readonly isCertain: boolean;
  /** Cause that only the operator can remove. */
  readonly alarm: string | null;
}

/** Settings that limit how long a pod may wait for a node, its image or a queue. */
type StartLimits = Pick<WorkerShape, 'queue' | 'awaySeconds' | 'startSeconds'>;

/** A Job without a pod for this long is read from the API server. */
const missingPodMs = 5_000;
/** Events of a pod that its node has not prepared for this long are read from the API server. Few images take longer to pull. */
const unpreparedMs = 300_000;
/** A pod that still runs so long after its deletion was asked for counts as gone: its node may be dead. */
export const podLeaveMs = 3_000;
/** While most nodes are unreachable Kubernetes evicts no pod: then a pod counts as lost so long after its eviction was due. */
const lostNodeMs = 120_000;

/** State of an attempt whose pod the kubelet ended before its container started, such as while the image came too slowly. */
const notStarted: Seen = {
  is: 'ended',
  outcome: { is: 'failed', code: 'queue_timeout', text: 'The worker could not be started in time' },
  neverRan: true,
};
const notStartedAlarm = 'DeadlineExceeded: the container of the pod was not started in time';
/** State of an attempt whose container the runtime of its node refused to start, such as for a full disk. */
const notStartable: Seen = { is: 'ended', outcome: { is: 'failed', code: 'worker_failed' }, neverRan: true };

/** Returns the state of an attempt. The last phase of its pod ends it, and so does the end of the Job or a deletion. */
export function judgeAttempt(objects: AttemptObjects, limits: StartLimits, now: number): AttemptJudgement {
  const { job, faults, quotaAt } = objects;
  const pods = ownPods(objects);
  const pod =
    pods.find(({ phase }) => phase === 'Succeeded') ?? pods.find((one) => !isTerminal(one)) ?? pods[0] ?? null;
  if (pod && isTerminal(pod)) {
    const unstarted = judgeUnstarted(pod);
    if (unstarted) return unstarted;
    const seen: Seen = { is: 'ended', outcome: outcomeOfPod(pod, job) };
    // A deleted pod without a verdict: the condition of its Job may hold the reason but arrives on another watch.
    const lacksReason = pod.deletedAt !== null && pod.disruption === null && !verdictOf(pod);
    return lacksReason ? uncertain(seen) : certain(seen);
  }
  if (!job && !pod) return uncertain({ is: 'absent' });
  const outcome = outcomeWithoutEnd(job, pod, limits, now);
  if (outcome) return uncertain({ is: 'ended', outcome });
  if (pod && pod.phase !== 'Pending') return certain({ is: 'running' });
  const since = Math.max(job?.startedAt ?? job?.createdAt ?? now, quotaAt ?? 0);
  const wait = pod ? explainPendingPod(pod, faults, limits, now) : explainMissingPod(job, faults, limits, now - since);
  if (!wait.outcome) return certain({ is: 'waiting', reason: wait.reason });
  return { ...uncertain({ is: 'ended', outcome: wait.outcome, neverRan: true }), alarm: alarmOf(pod, faults) };
}

/** Returns the pods of the Job itself: it may have the name of an earlier one, of which a pod is left, as after a backup was put back. */
export function ownPods({ job, pods }: Pick<AttemptObjects, 'job' | 'pods'>): readonly PodSnapshot[] {
  return pods.filter(({ jobUid }) => job === null || jobUid === null || jobUid === job.uid);
}

/** True for a Job that has been without a pod for so long that the API server is asked why. */
export function lacksPod(objects: Pick<AttemptObjects, 'job' | 'pods'>, now: number): boolean {
  const { job } = objects;
  return job !== null && now - job.createdAt >= missingPodMs && ownPods(objects).length === 0;
}

/** Returns the pod that its node has not prepared for so long that the API server is asked why. */
export function findUnprepared(objects: Pick<AttemptObjects, 'job' | 'pods'>, now: number): PodSnapshot | undefined {
  return ownPods(objects).find(({ phase, isPrepared, scheduledAt, createdAt }) => {
    return phase === 'Pending' && !isPrepared && now - (scheduledAt ?? createdAt) >= unpreparedMs;
  });
}

export function isTerminal({ phase }: PodSnapshot): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}

/** Returns the judgement of a pod that ended before its container had started, and `null` for every other. */
function judgeUnstarted({ reason, exit, disruption, deletedAt }: PodSnapshot): AttemptJudgement | null {
  if (reason === 'DeadlineExceeded' && !exit?.hasStarted) return { ...uncertain(notStarted), alarm: notStartedAlarm };
  // Of a pod that is taken away, that says why.
  if (exit?.reason !== 'StartError' || disruption !== null || deletedAt !== null) return null;
  return { ...uncertain(notStartable), alarm: `StartError: ${exit.message}` };
}

/** Returns the outcome of an attempt that is over although its pod has not ended, or does not exist. */
function outcomeWithoutEnd(
  job: JobSnapshot | null,
  pod: PodSnapshot | null,
  limits: StartLimits,
  now: number,
): Outcome | null {
  if (isLate(job, pod)) return { is: 'failed', code: 'timeout' };
  if (job?.ending) return interrupted(pod ? (pod.disruption ?? 'its pod was deleted') : 'its pod is gone');
  if (!job) return interrupted('its Job is gone');
  if (job.deletedAt !== null) return interrupted('its Job was deleted');
  if (!pod) return null;
  const isPast = (time: number | null, milliseconds: number) => time !== null && now - time >= milliseconds;
  if (isPast(pod.deletedAt, podLeaveMs)) return interrupted(pod.disruption ?? 'its pod was deleted');
  const isLost = isPast(pod.notReadySince, limits.awaySeconds * 1000 + lostNodeMs);
  return isLost ? interrupted('nothing is heard of its node') : null;
}

/** True when the cluster ended the attempt at its deadline. It deletes the pod before the Job has the condition. */
function isLate(job: JobSnapshot | null, pod: PodSnapshot | null): boolean {
  if (job?.ending?.reason === 'DeadlineExceeded') return true;
  return typeof job?.deadline === 'number' && typeof pod?.deletedAt === 'number' && pod.deletedAt >= job.deadline;
}

/** Returns the outcome of a pod in its last phase. The verdict of the worker counts first; the controller checks its file in the object store. */
function outcomeOfPod(pod: PodSnapshot, job: JobSnapshot | null): Outcome {
  const { exit, reason, disruption } = pod;
  const verdict = verdictOf(pod);
  if (verdict) return verdict;
  if (reason === 'DeadlineExceeded' || isLate(job, pod)) return { is: 'failed', code: 'timeout' };
  if (disruption !== null) return interrupted(disruption);
  // Without the condition DisruptionTarget the kubelet evicts because of the pod's own disk limit.
  if (reason === 'Evicted') return { is: 'failed', code: 'file_too_large' };
  if (reason !== '' || !exit) return interrupted(reason || 'its node did not run it');
  if (exit.reason === 'OOMKilled') return { is: 'failed', code: 'worker_failed' };
  return outcomeOfExitCode(exit.code);
}

/** Returns the verdict in the termination message. `interrupted` only means SIGTERM: the cluster knows the cause. */
function verdictOf({ exit }: PodSnapshot): Outcome | null {
  // Without a message, or with a truncated one or the kubelet's own, the exit code decides.
  const verdict = readVerdict(parseJson(exit?.message ?? ''));
  return verdict?.is === 'interrupted' ? null : verdict;
}

function alarmOf(pod: PodSnapshot | null, said: readonly string[]): string {
  const cause = pod?.unscheduled ?? pod?.waiting ?? { reason: '', message: '' };
  return said.at(-1) ?? `${cause.reason}: ${cause.message}`;
}

function interrupted(reason: string): Outcome {
  return { is: 'interrupted', reason };
}

function certain(seen: Seen): AttemptJudgement {
  return { seen, isCertain: true, alarm: null };
}

function uncertain(seen: Seen): AttemptJudgement {
  return { seen, isCertain: false, alarm: null };
}
