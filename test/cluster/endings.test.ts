import { expect } from 'chai';
import { isEnded } from '../../src/model/job.ts';
import { attemptNameOf } from '../../src/runners/runner.ts';
import { quickLoss } from '../support/cluster/cluster.ts';
import { startTestController, type TestController } from '../support/cluster/controller.ts';
import { type Ending, endings, type Pod } from '../support/cluster/pod.ts';
import { namespace, startTestbed, type Testbed } from '../support/cluster/testbed.ts';
import { readAttempts } from '../support/stored-job.ts';
import { until } from '../support/until.ts';

interface Row {
  /** The ending of the first attempt by itself; without it, the attempt runs until `act`. */
  readonly ending?: Ending;
  /** The action on the first attempt while it runs. */
  readonly act?: (hand: Hand) => Promise<unknown>;
  /** The mark of the first attempt in the record; success when left out. Without `counts` the job ended with it. */
  readonly mark?: { readonly code: string; readonly counts?: 'failure' | 'interruption' };
}

/** The outcome of a row. */
interface Played {
  readonly id: string;
  /** When the first pod was seen to be marked for deletion, if somebody looked. */
  readonly markedAt: number | null;
}

/** Actions of a person, or faults, on one job's Job, pod and node. */
interface Hand {
  readonly pod: Pod;
  readonly node: string;
  readonly job: string;
  ask(method: string, path: string, body?: object, type?: string): Promise<unknown>;
  /** No pod is sent to its node any more, and nothing is heard of it. */
  cutOff(): Promise<void>;
  restore(): void;
  /** Waits until the pod is to be deleted, or gone. */
  marked(): Promise<void>;
}

const core = '/api/v1';
const pods = `${core}/namespaces/${namespace}/pods`;
const jobs = `/apis/batch/v1/namespaces/${namespace}/jobs`;
const merge = 'application/merge-patch+json';
const background = { propagationPolicy: 'Background' };
const lost = { code: 'worker_lost', counts: 'interruption' } as const;
const late = { code: 'timeout', counts: 'failure' } as const;
const broken = { code: 'worker_failed', counts: 'failure' } as const;

const podPath = ({ pod }: Hand) => `${pods}/${pod.metadata.name}`;
const jobPath = ({ job }: Hand) => `${jobs}/${job}`;
const patchFailed = (hand: Hand) =>
  hand.ask('PATCH', `${podPath(hand)}/status`, { status: { phase: 'Failed', reason: 'NodeLost' } }, merge);
const shorten = (hand: Hand) => hand.ask('PATCH', jobPath(hand), { spec: { activeDeadlineSeconds: 1 } }, merge);
const afterLoss = (act: (hand: Hand) => unknown) => async (hand: Hand) => {
  await hand.cutOff();
  await hand.marked();
  await act(hand);
};

const rows: Record<string, Row> = {
  'it delivers': {},
  'it is evicted': {
    act: (hand) => hand.ask('POST', `${podPath(hand)}/eviction`, { metadata: { name: hand.pod.metadata.name } }),
    mark: lost,
  },
  'its pod is deleted': { act: (hand) => hand.ask('DELETE', podPath(hand)), mark: lost },
  'its pod is deleted without grace': {
    act: (hand) => hand.ask('DELETE', podPath(hand), { gracePeriodSeconds: 0 }),
    mark: lost,
  },
  'its Job passes its deadline': { act: shorten, mark: late },
  'its Job is deleted': { act: (hand) => hand.ask('DELETE', jobPath(hand), background), mark: lost },
  'its Job is deleted after its pods': {
    act: (hand) => hand.ask('DELETE', jobPath(hand), { propagationPolicy: 'Foreground' }),
    mark: lost,
  },
  'its Job is deleted and its pods are not': {
    act: (hand) => hand.ask('DELETE', jobPath(hand), { propagationPolicy: 'Orphan' }),
    mark: lost,
  },
  'its Job loses its finalizer and is deleted': {
    act: async (hand) => {
      await hand.ask('PATCH', jobPath(hand), { metadata: { finalizers: null } }, merge);
      // The controller goes on as soon as the Job is gone.
      await hand.ask('DELETE', jobPath(hand), background).catch(() => undefined);
    },
    mark: lost,
  },
  'it uses up its memory': { ending: endings.outOfMemory(), mark: broken },
  'it is killed': { ending: endings.failure(137), mark: lost },
  'it uses up its disk': { ending: endings.overDisk(), mark: { code: 'file_too_large', counts: 'failure' } },
  'its node has too little memory': { ending: endings.nodePressure(), mark: lost },
  'its pod passes its deadline': { ending: endings.deadline(), mark: late },
  'it crashes': { ending: endings.failure(1, 'no words'), mark: broken },
  'it reports a failure': {
    ending: endings.failure(64, '{"is":"failed","code":"private"}'),
    mark: { code: 'private' },
  },
  'its node is shut down': { ending: endings.nodeShutdown(), mark: lost },
  'its node rejects it as OutOfcpu': { ending: endings.rejected('OutOfcpu'), mark: lost },
  'its node rejects it with UnexpectedAdmissionError': {
    ending: endings.rejected('UnexpectedAdmissionError'),
    mark: lost,
  },
  'its Job is deleted, then its pod': {
    act: async (hand) => {
      await hand.ask('DELETE', jobPath(hand), background);
      // The controller may have been faster.
      await hand.ask('DELETE', podPath(hand)).catch(() => undefined);
    },
    mark: lost,
  },
};
/** After the others: a dead node takes everything that is on it. */
const deadRows: Record<string, Row> = {
  'its node is dead': { act: afterLoss(() => undefined), mark: lost },
  'its node is dead and its pod is marked as failed': { act: afterLoss(patchFailed), mark: lost },
  'its node is dead and is deleted': {
    act: afterLoss(({ ask, node }) => ask('DELETE', `${core}/nodes/${node}`)),
    mark: lost,
  },
  'its node is dead and declared out of service': {
    act: afterLoss(async ({ ask, node }) => {
      const taint = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' };
      await ask('PATCH', `${core}/nodes/${node}`, { spec: { taints: [taint] } });
    }),
    mark: lost,
  },
  'its node is dead and its Job waits until its pod has failed': {
    act: async (hand) => {
      await hand.ask('PATCH', jobPath(hand), { spec: { podReplacementPolicy: 'Failed' } }, merge);
      await hand.cutOff();
    },
    mark: lost,
  },
  'its node is dead and comes back': { act: afterLoss(({ restore }) => restore()), mark: lost },
  'its Job passes its deadline and its node is dead': {
    act: async (hand) => {
      await hand.cutOff();
      await shorten(hand);
    },
    mark: late,
  },
  'its Job passes its deadline, its node is dead, and its pod is marked as failed': {
    act: async (hand) => {
      await hand.cutOff();
      await shorten(hand);
      await hand.marked();
      // The pod may be gone already.
      await patchFailed(hand).catch(() => undefined);
    },
    mark: late,
  },
};

describe('an attempt in a cluster is settled once, and nothing is left of it 30 s later', () => {
  let testbed: Testbed;
  let controller: TestController;
  const results = new Map<string, Promise<Played>>();

  before(async () => {
    testbed = await startTestbed({ nodes: 60, flags: quickLoss });
    controller = await startTestController(testbed);
    for (const phase of [rows, deadRows]) {
      for (const [title, row] of Object.entries(phase)) results.set(title, playRow(row));
      // The test of each row reports its failure.
      await Promise.allSettled(results.values());
    }
  });
  after(async () => {
    await controller?.end('SIGTERM');
    await testbed?.stop();
  });

  async function playRow({ ending, act, mark }: Row): Promise<Played> {
    const first = ending ? { runMs: 50, ending } : {};
    const id = await testbed.submit((attempt) => (attempt === 1 && mark ? first : undefined));
    let markedAt: number | null = null;
    const seen = () => {
      markedAt = Date.now();
    };
    if (act) await act(await handOn(id, seen));
    await until(async () => isEnded((await testbed.job(id)).status), 120, `${id} ends`);
    await testbed.waitUntilEmpty(30, id);
    return { id, markedAt };
  }

  async function handOn(id: string, marked: () => void): Promise<Hand> {
    const pod = await testbed.runningPod(id);
    const { admin } = testbed.cluster;
    const path = `${pods}/${pod.metadata.name}`;
    return {
      pod,
      node: pod.spec.nodeName ?? '',
      job: attemptNameOf(id, 1),
      ask: (method, at, body, type) => admin.ask(method, at, body, type),
      cutOff: async () => {
        const node = pod.spec.nodeName ?? '';
        await admin.ask('PATCH', `${core}/nodes/${node}`, { spec: { unschedulable: true } }, merge);
        testbed.kubelet.cutOff(node);
      },
      restore: () => testbed.kubelet.restore(pod.spec.nodeName ?? ''),
      marked: async () => {
        const isMarked = () =>
          admin.ask<Pod>('GET', path).then(
            ({ metadata }) => metadata.deletionTimestamp !== undefined,
            () => true,
          );
        await until(isMarked, 60, `${path} is to be deleted`);
        marked();
      },
    };
  }

  for (const [title, { mark }] of Object.entries({ ...rows, ...deadRows })) {
    it(`settles an attempt once and leaves nothing when ${title}`, async () => {
      const { id = '' } = (await results.get(title)) ?? {};
      const marks = (await readAttempts(testbed.store, id)).map(({ attempt, code, counts }) => ({
        attempt,
        code,
        counts,
      }));
      const begins = (attempt: number) => ({ attempt, code: undefined, counts: undefined });
      const completed = { code: 'completed', counts: undefined };
      const first = [begins(1), { attempt: 1, ...completed, ...mark }];
      expect(marks).to.deep.equal(mark?.counts ? [...first, begins(2), { attempt: 2, ...completed }] : first);
      expect((await testbed.job(id)).status).to.equal(mark && !mark.counts ? 'Error' : 'CompletedJob');
      expect(await testbed.findProblems([id])).to.deep.equal([]);
    });
  }

  it('within 5 s after its pod was marked for deletion when its node is dead', async () => {
    const played = await Promise.all(Object.keys(deadRows).flatMap((title) => results.get(title) ?? []));
    const waits = played.map(async ({ id, markedAt }) => {
      const [, ended] = await readAttempts(testbed.store, id);
      return markedAt === null ? [] : [(ended?.ended_at ?? Number.POSITIVE_INFINITY) - markedAt];
    });
    const milliseconds = (await Promise.all(waits)).flat();
    expect(milliseconds).to.have.length(6);
    expect(Math.max(...milliseconds)).to.be.at.most(5_000);
  });

  it('with no Job, no pod and no orphan file left of any of them', async () => {
    const ids = (await Promise.all(results.values())).map(({ id }) => id);
    await testbed.waitUntilEmpty(30);
    expect(await testbed.listOrphanFiles(ids)).to.deep.equal([]);
  });

  it('settles an attempt once and leaves nothing when a pod of higher priority preempts its pod', async () => {
    const { admin } = testbed.cluster;
    const id = await testbed.submit((attempt) => (attempt === 1 ? {} : undefined));
    const { spec } = await testbed.runningPod(id);
    const priority = { metadata: { name: 'important' }, value: 1_000 };
    await admin.ask('POST', '/apis/scheduling.k8s.io/v1/priorityclasses', priority);
    await admin.ask('POST', `${core}/namespaces/default/pods`, {
      metadata: { name: 'important' },
      spec: {
        priorityClassName: 'important',
        nodeSelector: { 'kubernetes.io/hostname': spec.nodeName },
        // All that the node has.
        containers: [{ name: 'main', image: 'local.test/shell:1', resources: { requests: { memory: '4000Gi' } } }],
      },
    });
    expect((await testbed.waitUntilEnded(id, 60)).status).to.equal('CompletedJob');
    const [, ended] = await readAttempts(testbed.store, id);
    expect(ended).to.include(lost);
    await testbed.waitUntilEmpty(30);
  });

  for (const isReleased of [false, true]) {
    it(`settles an attempt once and leaves nothing when its Job reaches its TTL${isReleased ? ' and its pod is removed' : ''} while no controller leads`, async () => {
      let deliver: (() => Promise<Ending>) | undefined;
      const id = await testbed.submit((attempt, delivers) => {
        deliver ??= delivers;
        return attempt === 1 ? {} : undefined;
      });
      const pod = await testbed.runningPod(id);
      const path = `${pods}/${pod.metadata.name}`;
      const { admin } = testbed.cluster;
      await controller.end('SIGKILL');
      await admin.ask('PATCH', `${jobs}/${attemptNameOf(id, 1)}`, { spec: { ttlSecondsAfterFinished: 1 } }, merge);
      testbed.kubelet.end(pod.metadata.name, (await deliver?.()) ?? endings.success());
      const job = () => admin.ask('GET', `${jobs}/${attemptNameOf(id, 1)}`);
      await until(async () => (await job()).metadata.deletionTimestamp !== undefined, 30, 'its Job is to be deleted');
      if (isReleased) await admin.ask('PATCH', path, { metadata: { finalizers: null } }, merge);
      controller = await startTestController(testbed);
      const { status } = await testbed.waitUntilEnded(id, 60);
      expect(status).to.equal('CompletedJob');
      expect(await testbed.findProblems([id])).to.deep.equal([]);
      const [, ended] = await readAttempts(testbed.store, id);
      expect(ended).to.include(isReleased ? lost : { code: 'completed' });
      await testbed.waitUntilEmpty(30);
    });
  }
});
