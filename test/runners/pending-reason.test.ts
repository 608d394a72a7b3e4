import { expect } from 'chai';
import { findPreparationFault } from '../../src/runners/kubernetes/pending-reason.ts';
import { scheduled, unprepared, unschedulable, unstarted, waitingFor } from '../support/cluster-objects.ts';
import { givenUp, judgeRows, type Row, waiting } from '../support/cluster-rows.ts';

const pull = 'The image of the worker is being fetched';

const noNetwork = 'FailedCreatePodSandBox: no free address';

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
  'the pod is refused because its ServiceAccount is being replaced': {
    pods: [],
    said: ['pods "x" is forbidden: error looking up service account workers/trawl-worker: not found'],
    seconds: 179,
    seen: waiting('The cluster makes no pod for it'),
  },
  'the pod of a Job that Kueue has just admitted is refused': {
    job: { metadata: { creationTimestamp: '2026-11-21T09:00:00Z' } },
    pods: [],
    said: ['pods "x" is forbidden: error looking up service account workers/trawl-worker: not found'],
    seconds: 179,
    seen: waiting('The cluster makes no pod for it'),
  },
  'the pod is refused after its quota was used up for longer than a refusal may last': {
    pods: [],
    said: [
      'pods "x" is forbidden: exceeded quota: workers',
      'pods "x" is forbidden: error looking up service account workers/trawl-worker: not found',
    ],
    seconds: 779,
    quotaSecond: 600,
    seen: waiting('The cluster makes no pod for it'),
  },
  'the pod is refused for too long after its quota was used up': {
    pods: [],
    said: ['pods "x" is forbidden: exceeded quota: workers', 'pods "x" is forbidden: violates PodSecurity'],
    seconds: 780,
    quotaSecond: 600,
    seen: givenUp('worker_failed'),
    alarm: 'pods "x" is forbidden: violates PodSecurity',
  },
  'the pod is refused by a policy for too long': {
    pods: [],
    said: ['pods "x" is forbidden: violates PodSecurity "restricted:latest"'],
    seconds: 180,
    seen: givenUp('worker_failed'),
    alarm: 'pods "x" is forbidden: violates PodSecurity "restricted:latest"',
  },
  'the pod is refused by the admission policy of another release': {
    pods: [],
    said: [
      `pods "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: trawl: only the image of workers`,
    ],
    seen: givenUp('worker_failed'),
    alarm: `pods "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: trawl: only the image of workers`,
  },
  'the pod cannot be made for another reason': {
    pods: [],
    said: ['etcdserver: request timed out'],
    seen: waiting('The cluster makes no pod for it'),
  },
  'the proxy of an admission webhook denies access to it': {
    pods: [],
    said: [
      'Internal error occurred: failed calling webhook "v.example.com": failed to call webhook: RBAC: access denied',
    ],
    seen: waiting('The cluster makes no pod for it'),
  },
  'an admission webhook answers without a judgement': {
    pods: [],
    said: [
      'Internal error occurred: failed calling webhook "v.example.com": received invalid webhook response: absent',
    ],
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
    seen: givenUp('queue_timeout', 'No node of the cluster had room for the job'),
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
  'its node before Kubernetes 1.36 pulls the image and says that the pod is unprepared': {
    pods: [{ status: unprepared() }],
    seconds: 3600,
    seen: waiting(null),
  },
  'its node gives it no network': {
    pods: [{ status: unprepared() }],
    said: [noNetwork],
    seconds: 899,
    seen: waiting('The worker cannot be started yet'),
  },
  'its node has given it no network for too long': {
    pods: [{ status: unprepared() }],
    said: [noNetwork],
    seconds: 900,
    seen: { is: 'ended', outcome: { is: 'interrupted', reason: 'its node does not start it' }, neverRan: true },
    alarm: noNetwork,
  },
  'the kubelet ends the pod at its deadline before its container was started': {
    pods: [{ status: { phase: 'Failed', reason: 'DeadlineExceeded', ...unstarted() } }],
    seen: givenUp('queue_timeout', 'The worker could not be started in time'),
    alarm: 'DeadlineExceeded: the container of the pod was not started in time',
  },
  'the kubelet ends the pod at its deadline and tells nothing of its container': {
    pods: [{ status: { phase: 'Failed', reason: 'DeadlineExceeded' } }],
    seen: givenUp('queue_timeout', 'The worker could not be started in time'),
    alarm: 'DeadlineExceeded: the container of the pod was not started in time',
  },
  'the image is not there yet': {
    pods: [{ status: waitingFor('ImagePullBackOff') }],
    seconds: 179,
    seen: waiting(pull),
  },
  'the image is not there for too long': {
    pods: [{ status: waitingFor('ErrImagePull') }],
    seconds: 181,
    seen: givenUp('worker_failed'),
    alarm: 'ErrImagePull: ',
  },
  'the registry is busy': {
    pods: [{ status: waitingFor('ErrImagePull', 'toomanyrequests: 429 Too Many Requests') }],
    seconds: 3600,
    seen: waiting(pull),
  },
  'the image can never be there': {
    pods: [{ status: waitingFor('InvalidImageName', 'no name') }],
    seen: givenUp('worker_failed'),
    alarm: 'InvalidImageName: no name',
  },
  'the container is configured wrongly': {
    pods: [{ status: waitingFor('CreateContainerConfigError') }],
    seconds: 61,
    seen: givenUp('worker_failed'),
    alarm: 'CreateContainerConfigError: ',
  },
  'the container cannot be made': {
    pods: [{ status: waitingFor('CreateContainerError') }],
    seconds: 60,
    seen: waiting('The worker cannot be started yet'),
  },
};

describe('what an attempt in a cluster waits for', () => judgeRows(rows));

describe('the events of a pod that its node has not prepared', () => {
  const sandbox = { reason: 'FailedCreatePodSandBox', message: 'no free address' };
  const volume = { reason: 'FailedMount', message: 'not yet' };
  const pulling = { reason: 'Pulling', message: 'Pulling image "worker"' };

  it('name the last fault of its network or its volumes', () => {
    expect(findPreparationFault([volume, sandbox])).to.equal(noNetwork);
    expect(findPreparationFault([pulling, volume])).to.equal('FailedMount: not yet');
  });

  it('name no fault once its node pulls the image, and none without events', () => {
    expect(findPreparationFault([volume, sandbox, pulling])).to.equal(null);
    expect(findPreparationFault([])).to.equal(null);
  });
});
