import { expect } from 'chai';
import fc from 'fast-check';
import { parseEvent, unreadOfJob, unreadOfPod } from '../../src/runners/kubernetes/parse-event.ts';
import { readJobSnapshot, readPodSnapshot } from '../../src/runners/kubernetes/snapshot.ts';

interface Told {
  /** Text of a caller or of the cluster, which stands in several places. */
  readonly text: string;
  readonly isHeld: boolean;
  readonly isDeleted: boolean;
}

/** Metadata in the order in which the API server writes it. */
const metadataOf = ({ text, isHeld, isDeleted }: Told) => ({
  name: 'job-1-abcde',
  namespace: 'workers',
  uid: 'uid-of-it',
  resourceVersion: '42',
  creationTimestamp: '2026-03-04T05:06:07Z',
  ...(isDeleted && { deletionTimestamp: '2026-03-04T05:07:07Z', deletionGracePeriodSeconds: 30 }),
  labels: { 'batch.kubernetes.io/job-name': 'job-1' },
  annotations: { note: text, [text]: 'noted' },
  ...(isHeld && { finalizers: ['trawl/unsettled', text] }),
  managedFields: [
    { manager: text, operation: 'Update', fieldsV1: { 'f:metadata': { 'f:name': {} }, 'f:spec': { 'f:suspend': {} } } },
    { manager: 'kubelet', subresource: 'status', fieldsV1: { 'f:status': { 'f:phase': {} } } },
  ],
});
const podOf = (told: Told) => ({
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: metadataOf(told),
  spec: { containers: [{ name: 'worker', command: [told.text], env: [{ name: 'A', value: told.text }] }] },
  status: {
    phase: 'Failed',
    reason: told.text,
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: told.text }],
    containerStatuses: [{ state: { terminated: { exitCode: 3, reason: 'Error', message: told.text } } }],
  },
});
const jobOf = (told: Told) => ({
  kind: 'Job',
  apiVersion: 'batch/v1',
  metadata: metadataOf(told),
  spec: {
    parallelism: 1,
    activeDeadlineSeconds: 90,
    selector: { matchLabels: { job: told.text } },
    template: { metadata: { labels: { job: told.text } }, spec: podOf(told).spec },
    ttlSecondsAfterFinished: 900,
  },
  status: {
    startTime: '2026-03-04T05:06:08Z',
    conditions: [{ type: 'Failed', status: 'True', reason: told.text }],
  },
});
const lineOf = (object: object, type = 'MODIFIED') => JSON.stringify({ type, object });
const objectIn = (line: string, unread = unreadOfPod) => (parseEvent(line, unread) as { object: never }).object;
const plain: Told = { text: 'a word', isHeld: true, isDeleted: false };
/** Texts that bound the parts which are left out. */
const bounds = [...unreadOfJob, ...unreadOfPod].flat();

describe('an event of a watch', () => {
  it('is parsed without the list of who wrote each field, and without the spec of a pod', () => {
    const { metadata, ...pod } = podOf(plain);
    const { managedFields: _owners, ...read } = metadata;
    expect(objectIn(lineOf(podOf(plain)))).to.deep.equal({
      kind: pod.kind,
      apiVersion: pod.apiVersion,
      metadata: read,
      status: pod.status,
    });
  });

  it('is parsed without the template of a Job, with its deadline', () => {
    const { metadata, spec, ...job } = jobOf(plain);
    const { managedFields: _owners, ...read } = metadata;
    const { parallelism, activeDeadlineSeconds, selector } = spec;
    expect(objectIn(lineOf(jobOf(plain)), unreadOfJob)).to.deep.equal({
      kind: job.kind,
      apiVersion: job.apiVersion,
      metadata: read,
      spec: { parallelism, activeDeadlineSeconds, selector },
      status: job.status,
    });
  });

  it('gives the same snapshot as one that is parsed whole, whatever its texts hold', () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom(...bounds, ...bounds.map((bound) => `"${bound}`)),
    );
    const told = fc.record({ text, isHeld: fc.boolean(), isDeleted: fc.boolean() });
    fc.assert(
      fc.property(told, (one) => {
        const [pod, job] = [podOf(one), jobOf(one)];
        expect(readPodSnapshot(objectIn(lineOf(pod)))).to.deep.equal(readPodSnapshot(pod as never));
        expect(readJobSnapshot(objectIn(lineOf(job), unreadOfJob))).to.deep.equal(readJobSnapshot(job as never));
      }),
    );
  });

  it('is parsed whole when metadata, spec and status stand in another order', () => {
    const { metadata, spec, status } = podOf(plain);
    for (const pod of [
      { status, spec, metadata },
      { spec, metadata, status },
      { metadata, status },
    ]) {
      expect(readPodSnapshot(objectIn(lineOf(pod)))).to.deep.equal(readPodSnapshot(podOf(plain) as never));
    }
  });

  it('is parsed whole when it is a bookmark or an error', () => {
    const bookmark = { kind: 'Pod', metadata: { resourceVersion: '43', creationTimestamp: null } };
    const error = { kind: 'Status', metadata: {}, code: 410, reason: 'Expired', message: bounds.join(' ') };
    expect(parseEvent(lineOf(bookmark, 'BOOKMARK'), unreadOfPod)).to.deep.equal({ type: 'BOOKMARK', object: bookmark });
    expect(parseEvent(lineOf(error, 'ERROR'), unreadOfJob)).to.deep.equal({ type: 'ERROR', object: error });
  });
});
