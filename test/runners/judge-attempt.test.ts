import { expect } from 'chai';
import type { Seen } from '../../src/model/next.ts';
import type { Outcome } from '../../src/model/outcome.ts';
import { findUnprepared, lacksPod } from '../../src/runners/kubernetes/judge-attempt.ts';
import { readJobSnapshot, readPodSnapshot } from '../../src/runners/kubernetes/snapshot.ts';
import {
  aRawJob,
  aRawPod,
  attemptName,
  begun,
  deleted,
  deletedLater,
  disrupted,
  terminated,
  unheard,
  unprepared,
} from '../support/cluster-objects.ts';
import { failed, givenUp, judgeRows, type Row } from '../support/cluster-rows.ts';
import { someDelivered, someMetadata } from '../support/jobs.ts';

const running: Seen = { is: 'running' };
const interrupted = (reason: string): Seen => ({ is: 'ended', outcome: { is: 'interrupted', reason } });
const done: Outcome = { is: 'done', metadata: someMetadata, delivered: someDelivered(1) };
const ble = [['FailureTarget', 'BackoffLimitExceeded']] as [string, string][];
const deadline = [['FailureTarget', 'DeadlineExceeded']] as [string, string][];
const ownedBy = (uid: string) => ({
  ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: attemptName, uid }],
});
const toldToStop = '{"is":"interrupted","reason":"stopped"}';

const rows: Record<string, Row> = {
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
  'the runtime of its node could not start it': {
    pods: [{ status: { phase: 'Failed', ...terminated(128, 'StartError', 'no space left on device') } }],
    seen: givenUp('worker_failed'),
    alarm: 'StartError: no space left on device',
  },
  'it was evicted while the runtime of its node started it': {
    pods: [
      {
        metadata: deleted,
        status: {
          phase: 'Failed',
          ...disrupted('EvictionByEvictionAPI'),
          ...terminated(128, 'StartError', 'canceled'),
        },
      },
    ],
    seen: interrupted('EvictionByEvictionAPI'),
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
    pods: [{ status: { phase: 'Failed', reason: 'Evicted', ...terminated(143, 'Error', toldToStop) } }],
    seen: failed('file_too_large'),
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
    pods: [
      { status: { phase: 'Failed', ...disrupted('PreemptionByScheduler'), ...terminated(143, 'Error', toldToStop) } },
    ],
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
    pods: [{ status: { phase: 'Failed', reason: 'DeadlineExceeded', ...terminated(143, 'Error', toldToStop) } }],
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
  'a failed pod is left of an earlier Job of its name': {
    pods: [{ metadata: ownedBy('an-earlier-job'), status: { phase: 'Failed', ...terminated(1, 'Error') } }],
    seen: { is: 'waiting', reason: null },
  },
  'a pod of its own runs beside one that is left of an earlier Job of its name': {
    pods: [
      { metadata: ownedBy('an-earlier-job'), status: { phase: 'Succeeded', ...terminated(0, 'Completed') } },
      { metadata: ownedBy('job-1') },
    ],
    seen: running,
  },
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

describe('how an attempt in a cluster ends', () => judgeRows(rows));

describe('a Job without a pod', () => {
  const job = readJobSnapshot(aRawJob());
  const pod = (uid: string) => readPodSnapshot(aRawPod({ metadata: ownedBy(uid) }));
  it('is one whose only pod is left of an earlier Job of its name: the cluster was never asked why it has none', () => {
    expect(lacksPod({ job, pods: [pod('an-earlier-job')] }, begun + 5_000)).to.equal(true);
    expect(lacksPod({ job, pods: [pod('an-earlier-job'), pod('job-1')] }, begun + 5_000)).to.equal(false);
  });
  it('is none before 5 s, in which the cluster makes the pod, and none without a Job', () => {
    expect(lacksPod({ job, pods: [] }, begun + 4_999)).to.equal(false);
    expect(lacksPod({ job, pods: [] }, begun + 5_000)).to.equal(true);
    expect(lacksPod({ job: null, pods: [] }, begun + 5_000)).to.equal(false);
  });
});

describe('a pod that its node has not prepared', () => {
  const job = readJobSnapshot(aRawJob());
  const unpreparedPod = readPodSnapshot(aRawPod({ status: unprepared() }));
  it('is one that waits for 5 min: the cluster is asked for its events', () => {
    expect(findUnprepared({ job, pods: [unpreparedPod] }, begun + 299_999)).to.equal(undefined);
    expect(findUnprepared({ job, pods: [unpreparedPod] }, begun + 300_000)).to.equal(unpreparedPod);
  });
  it('is none that runs: its node may make its network anew', () => {
    const running = readPodSnapshot(aRawPod({ status: { ...unprepared(), phase: 'Running' } }));
    expect(findUnprepared({ job, pods: [running] }, begun + 300_000)).to.equal(undefined);
  });
});
