import { expect } from 'chai';
import type { Seen } from '../../src/model/next.ts';
import type { Outcome } from '../../src/model/outcome.ts';
import { judge } from '../../src/runners/kubernetes/endings.ts';
import { slimJob, slimPod } from '../../src/runners/kubernetes/slim.ts';
import {
  aRawJob,
  aRawPod,
  begun,
  deleted,
  deletedLater,
  disrupted,
  scheduled,
  terminated,
  unheard,
  unschedulable,
  waitingFor,
} from '../support/cluster-objects.ts';
import { someDelivered, someMetadata } from '../support/jobs.ts';

interface Row {
  readonly job?: Parameters<typeof aRawJob>[0] | null;
  readonly pods?: readonly Parameters<typeof aRawPod>[0][];
  readonly said?: readonly string[];
  readonly seconds?: number;
  /** A queue of the cluster admits the pods. */
  readonly queue?: string;
  readonly alarm?: string;
  readonly seen: Seen;
  /** Where what is known may be too old to act upon; an alarm is read too. */
  readonly isRead?: true;
}

const running: Seen = { is: 'running' };
const waiting = (reason: string | null): Seen => ({ is: 'waiting', reason });
const interrupted = (reason: string): Seen => ({ is: 'ended', outcome: { is: 'interrupted', reason } });
const failed = (code: (Outcome & { is: 'failed' })['code'], text?: string): Seen => {
  return { is: 'ended', outcome: { is: 'failed', code, ...(text && { text }) } };
};
const done: Outcome = { is: 'done', metadata: someMetadata, delivered: someDelivered(1) };
const ble = [['FailureTarget', 'BackoffLimitExceeded']] as [string, string][];
const deadline = [['FailureTarget', 'DeadlineExceeded']] as [string, string][];
const toldToStop = '{"is":"interrupted","reason":"stopped"}';
const pull = 'The image of the worker is being fetched';

const rows: Record<string, Row> = {
  'nothing is there': { job: null, pods: [], seen: { is: 'absent' }, isRead: true },
  'a Job has no pod yet': { pods: [], seen: waiting(null) },
  'a queue of the cluster has not admitted it': {
    job: { conditions: [['Suspended', 'JobSuspended']] },
    pods: [],
    seen: waiting('The cluster has not admitted it yet'),
  },
  'the quota is used up': {
    pods: [],
    said: ['pods "x" is forbidden: exceeded quota: workers'],
    seen: waiting('The quota of the cluster is used up'),
  },
  'the pod is refused by a policy': {
    pods: [],
    said: ['pods "x" is forbidden: violates PodSecurity "restricted:latest"'],
    seen: failed('worker_failed'),
    alarm: 'pods "x" is forbidden: violates PodSecurity "restricted:latest"',
  },
  'the pod cannot be made for another reason': {
    pods: [],
    said: ['etcdserver: request timed out'],
    seen: waiting('The cluster makes no pod for it'),
  },
  'no node has room': {
    pods: [{ status: unschedulable }],
    seconds: 899,
    seen: waiting('No node of the cluster has room for it'),
  },
  'no node has had room for too long': {
    pods: [{ status: unschedulable }],
    seconds: 900,
    seen: failed('queue_timeout', 'No node of the cluster had room for the job'),
    alarm: 'Unschedulable: 0/3 nodes are available',
  },
  'no node has room for what a queue of the cluster has admitted': {
    pods: [{ status: unschedulable }],
    seconds: 86_400,
    queue: 'media',
    seen: waiting('No node of the cluster has room for it'),
  },
  'a gate holds the pod back': {
    pods: [
      { status: { phase: 'Pending', conditions: [{ ...scheduled, status: 'False', reason: 'SchedulingGated' }] } },
    ],
    seen: waiting('The cluster has not admitted it yet'),
  },
  'the container is being made': {
    pods: [{ status: waitingFor('ContainerCreating') }],
    seconds: 3600,
    seen: waiting(null),
  },
  'the image is not there yet': {
    pods: [{ status: waitingFor('ImagePullBackOff') }],
    seconds: 179,
    seen: waiting(pull),
  },
  'the image is not there for too long': {
    pods: [{ status: waitingFor('ErrImagePull') }],
    seconds: 181,
    seen: failed('worker_failed'),
    alarm: 'ErrImagePull: ',
  },
  'the registry is busy': {
    pods: [{ status: waitingFor('ErrImagePull', 'toomanyrequests: 429 Too Many Requests') }],
    seconds: 3600,
    seen: waiting(pull),
  },
  'the image can never be there': {
    pods: [{ status: waitingFor('InvalidImageName', 'no name') }],
    seen: failed('worker_failed'),
    alarm: 'InvalidImageName: no name',
  },
  'the container is configured wrongly': {
    pods: [{ status: waitingFor('CreateContainerConfigError') }],
    seconds: 61,
    seen: failed('worker_failed'),
    alarm: 'CreateContainerConfigError: ',
  },
  'the container cannot be made': {
    pods: [{ status: waitingFor('CreateContainerError') }],
    seconds: 60,
    seen: waiting('The worker cannot be started yet'),
  },
  'it runs': { pods: [{}], seen: running },
  'it has delivered': {
    pods: [{ status: { phase: 'Succeeded', ...terminated(0, 'Completed', JSON.stringify(done)) } }],
    seen: { is: 'ended', outcome: done },
  },
  'it ended well and said nothing': {
    pods: [{ status: { phase: 'Succeeded', ...terminated(0, 'Completed') } }],
    seen: failed('worker_failed'),
  },
  'it was ended after it had delivered': {
    pods: [{ metadata: deleted, status: { phase: 'Failed', ...terminated(143, 'Error', JSON.stringify(done)) } }],
    seen: { is: 'ended', outcome: done },
  },
  'it says why it failed': {
    pods: [
      {
        status: {
          phase: 'Failed',
          ...terminated(64, 'Error', '{"is":"failed","code":"private","text":"It is private"}'),
        },
      },
    ],
    seen: failed('private', 'It is private'),
  },
  'its message is cut off': {
    pods: [{ status: { phase: 'Failed', ...terminated(1, 'Error', '{"is":"failed","co') } }],
    seen: failed('worker_failed'),
  },
  'its message is of the kubelet': {
    pods: [{ status: { phase: 'Failed', ...terminated(137, 'ContainerStatusUnknown', 'could not be located') } }],
    seen: interrupted('exit code 137'),
  },
  'it failed and told nobody': {
    pods: [{ status: { phase: 'Failed', ...terminated(75, 'Error') } }],
    seen: failed('worker_failed'),
  },
  'it used up its memory': {
    pods: [{ status: { phase: 'Failed', ...terminated(137, 'OOMKilled') } }],
    seen: failed('worker_failed'),
  },
  'it was killed': {
    pods: [{ status: { phase: 'Failed', ...terminated(137, 'Error') } }],
    seen: interrupted('exit code 137'),
  },
  'it used up its disk': {
    pods: [{ status: { phase: 'Failed', reason: 'Evicted', ...terminated(137, 'Error') } }],
    seen: failed('file_too_large'),
  },
  'it was told to stop, for it had used up its disk': {
    pods: [{ status: { phase: 'Failed', reason: 'Evicted', ...terminated(143, 'Error', toldToStop) } }],
    seen: failed('file_too_large'),
  },
  'it was told to stop, for its time was over': {
    pods: [{ status: { phase: 'Failed', reason: 'DeadlineExceeded', ...terminated(143, 'Error', toldToStop) } }],
    seen: failed('timeout'),
  },
  'it was told to stop, and nobody says why': {
    pods: [{ status: { phase: 'Failed', ...terminated(143, 'Error', toldToStop) } }],
    seen: interrupted('exit code 143'),
  },
  'its node ran out of disk': {
    pods: [{ status: { phase: 'Failed', reason: 'Evicted', ...disrupted('TerminationByKubelet') } }],
    seen: interrupted('TerminationByKubelet'),
  },
  'it was evicted': {
    pods: [
      {
        metadata: deleted,
        status: { phase: 'Failed', ...disrupted('EvictionByEvictionAPI'), ...terminated(143, 'Error') },
      },
    ],
    seen: interrupted('EvictionByEvictionAPI'),
  },
  'more important pods took its place': {
    pods: [{ status: { phase: 'Failed', ...disrupted('PreemptionByScheduler'), ...terminated(143, 'Error') } }],
    seen: interrupted('PreemptionByScheduler'),
  },
  'its node did not take it': {
    pods: [{ status: { phase: 'Failed', reason: 'OutOfcpu' } }],
    seen: interrupted('OutOfcpu'),
  },
  'its node was shut down': {
    pods: [{ status: { phase: 'Failed', reason: 'Shutdown' } }],
    seen: interrupted('Shutdown'),
  },
  'its node ended it without a word': {
    pods: [{ status: { phase: 'Failed' } }],
    seen: interrupted('its node did not run it'),
  },
  'it took too long': {
    pods: [{ status: { phase: 'Failed', reason: 'DeadlineExceeded', ...terminated(143, 'Error') } }],
    seen: failed('timeout'),
  },
  'its Job took too long': {
    job: { conditions: deadline },
    pods: [{ metadata: deleted }],
    seen: failed('timeout'),
    isRead: true,
  },
  'its Job took too long and its pod has gone down': {
    job: { conditions: deadline },
    pods: [{ metadata: deleted, status: { phase: 'Failed', ...terminated(143, 'Error') } }],
    seen: failed('timeout'),
    isRead: true,
  },
  'its time was up when its pod was taken away, and its Job has not said so yet': {
    job: { activeDeadlineSeconds: 10 },
    pods: [{ metadata: deletedLater, status: { phase: 'Failed' } }],
    seen: failed('timeout'),
    isRead: true,
  },
  'its pod was taken away before its time was up': {
    job: { activeDeadlineSeconds: 11 },
    pods: [{ metadata: deletedLater, status: { phase: 'Failed' } }],
    seen: interrupted('its node did not run it'),
    isRead: true,
  },
  'its node is dead': {
    job: { conditions: ble },
    pods: [{ metadata: deleted, status: disrupted('DeletionByTaintManager') }],
    seen: interrupted('DeletionByTaintManager'),
    isRead: true,
  },
  'nothing is heard of its node, which the cluster will take it from': {
    pods: [{ status: unheard }],
    seconds: 179,
    seen: running,
  },
  'nothing is heard of its node for too long, and the cluster does not take it away': {
    pods: [{ status: unheard }],
    seconds: 180,
    seen: interrupted('nothing is heard of its node'),
    isRead: true,
  },
  'it was just told to leave': { pods: [{ metadata: deleted }], seconds: 2, seen: running },
  'it was told to leave and does not': {
    pods: [{ metadata: deleted }],
    seconds: 3,
    seen: interrupted('its pod was deleted'),
    isRead: true,
  },
  'its pod was deleted by hand': {
    job: { conditions: ble },
    pods: [{ metadata: deleted, status: { phase: 'Failed', ...terminated(143, 'Error') } }],
    seen: interrupted('exit code 143'),
    isRead: true,
  },
  'its pod is gone': { job: { conditions: ble }, pods: [], seen: interrupted('its pod is gone'), isRead: true },
  'its Job is being deleted': {
    job: { metadata: deleted },
    pods: [{}],
    seen: interrupted('its Job was deleted'),
    isRead: true,
  },
  'its Job is being deleted after its end': {
    job: { metadata: deleted, conditions: [['Complete', 'CompletionsReached']] },
    pods: [{ metadata: deleted, status: { phase: 'Succeeded', ...terminated(0, 'Completed', JSON.stringify(done)) } }],
    seen: { is: 'ended', outcome: done },
  },
  'its Job is gone': { job: null, pods: [{}], seen: interrupted('its Job is gone'), isRead: true },
  'one of two pods has delivered': {
    pods: [{}, { status: { phase: 'Succeeded', ...terminated(0, 'Completed', JSON.stringify(done)) } }],
    seen: { is: 'ended', outcome: done },
  },
};

describe('how an attempt in a cluster stands', () => {
  for (const [title, row] of Object.entries(rows)) {
    it(title, () => {
      const judged = judge(
        {
          job: row.job === null ? null : slimJob(aRawJob(row.job)),
          pods: (row.pods ?? []).map((pod) => slimPod(aRawPod(pod))),
          said: row.said ?? [],
        },
        { queue: row.queue ?? null, awaySeconds: 60, startSeconds: 180 },
        begun + (row.seconds ?? 1) * 1000,
      );
      expect(judged.seen).to.deep.equal(row.seen);
      expect(judged.isProved).to.equal(!row.isRead && !row.alarm);
      expect(judged.alarm).to.equal(row.alarm ?? null);
    });
  }
});
