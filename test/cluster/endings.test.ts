import { expect } from 'chai';
import { isEnded } from '../../src/model/job.ts';
import { attemptNameOf } from '../../src/runners/runner.ts';
import { readAttempts } from '../../src/store/jobs/read-job.ts';
import { quickLoss } from '../support/cluster/cluster.ts';
import { startTestController, type TestController } from '../support/cluster/controller.ts';
import { type Ending, endings, type Pod } from '../support/cluster/pod.ts';
import { namespace, type Scene, setScene } from '../support/cluster/scene.ts';
import { until } from '../support/until.ts';

interface Row {
  /** How the first attempt ends by itself; without it, it runs until something is done to it. */
  readonly ending?: Ending;
  /** What is done to the first attempt while it runs. */
  readonly act?: (hand: Hand) => Promise<unknown>;
  /** What the record says of the first attempt; it ended well when left out. Without `counts` the job ended with it. */
  readonly mark?: { readonly code: string; readonly counts?: 'failure' | 'interruption' };
}

/** How a row was played. */
interface Played {
  readonly id: string;
  /** When the first pod was seen to be marked for deletion, if somebody looked. */
  readonly markedAt: number | null;
}

/** What a person, or a fault, can do to one job's Job, pod and node. */
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
  'its Job is late': { act: shorten, mark: late },
  'its Job is deleted': { act: (hand) => hand.ask('DELETE', jobPath(hand), background), mark: lost },
  'its Job is deleted after its pods': {
    act: (hand) => hand.ask('DELETE', jobPath(hand), { propagationPolicy: 'Foreground' }),
    mark: lost,
  },
  'its Job is deleted and its pods are not': {
    act: (hand) => hand.ask('DELETE', jobPath(hand), { propagationPolicy: 'Orphan' }),
    mark: lost,
  },
  'its Job is let go and deleted by a person': {
    act: async (hand) => {
      await hand.ask('PATCH', jobPath(hand), { metadata: { finalizers: null } }, merge);
      // It goes on by itself as soon as the Job has gone.
      await hand.ask('DELETE', jobPath(hand), background).catch(() => undefined);
    },
    mark: lost,
  },
  'it uses up its memory': { ending: endings.outOfMemory(), mark: broken },
  'it is killed': { ending: endings.failure(137), mark: lost },
  'it uses up its disk': { ending: endings.overDisk(), mark: { code: 'file_too_large', counts: 'failure' } },
  'its node has too little memory': { ending: endings.nodePressure(), mark: lost },
  'it is late': { ending: endings.deadline(), mark: late },
  'it crashes': { ending: endings.failure(1, 'no words'), mark: broken },
  'it says why it has failed': {
    ending: endings.failure(64, '{"is":"failed","code":"private"}'),
    mark: { code: 'private' },
  },
  'its node is shut down': { ending: endings.nodeShutdown(), mark: lost },
  'its node has no room for it after all': { ending: endings.rejected('OutOfcpu'), mark: lost },
  'its node does not take it': { ending: endings.rejected('UnexpectedAdmissionError'), mark: lost },
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
  'its node is dead and a person fails its pod': { act: afterLoss(patchFailed), mark: lost },
  'its node is dead and is taken out of the cluster': {
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
  'its Job is late and its node dead': {
    act: async (hand) => {
      await hand.cutOff();
      await shorten(hand);
    },
    mark: late,
  },
  'its Job is late, its node dead, and a person fails its pod': {
    act: async (hand) => {
      await hand.cutOff();
      await shorten(hand);
      await hand.marked();
      // It may be gone already.
      await patchFailed(hand).catch(() => undefined);
    },
    mark: late,
  },
};

describe('every ending of an attempt in a cluster is settled once, and nothing is left of it 30 s later', function () {
  this.timeout(180_000);
  let scene: Scene;
  let controller: TestController;
  const results = new Map<string, Promise<Played>>();

  before(async () => {
    scene = await setScene({ nodes: 60, flags: quickLoss });
    controller = await startTestController(scene);
    for (const phase of [rows, deadRows]) {
      for (const [title, row] of Object.entries(phase)) results.set(title, playRow(row));
      // What goes wrong is told by the test of its row.
      await Promise.allSettled(results.values());
    }
  });
  after(async () => {
    await controller?.end('SIGTERM');
    await scene?.stop();
  });

  async function playRow({ ending, act, mark }: Row): Promise<Played> {
    const first = ending ? { runMs: 50, ending } : {};
    const id = await scene.submit((attempt) => (attempt === 1 && mark ? first : undefined));
    let markedAt: number | null = null;
    const seen = () => {
      markedAt = Date.now();
    };
    if (act) await act(await handOn(id, seen));
    await until(async () => isEnded((await scene.job(id)).status), 120, `${id} ends`);
    await scene.cleared(30, id);
    return { id, markedAt };
  }

  async function handOn(id: string, marked: () => void): Promise<Hand> {
    const pod = await scene.runningPod(id);
    const { admin } = scene.cluster;
    const path = `${pods}/${pod.metadata.name}`;
    return {
      pod,
      node: pod.spec.nodeName ?? '',
      job: attemptNameOf(id, 1),
      ask: (method, at, body, type) => admin.ask(method, at, body, type),
      cutOff: async () => {
        const node = pod.spec.nodeName ?? '';
        await admin.ask('PATCH', `${core}/nodes/${node}`, { spec: { unschedulable: true } }, merge);
        scene.kubelet.cutOff(node);
      },
      restore: () => scene.kubelet.restore(pod.spec.nodeName ?? ''),
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
    it(title, async () => {
      const { id = '' } = (await results.get(title)) ?? {};
      const marks = (await readAttempts(scene.store, id)).map(({ attempt, code, counts }) => ({
        attempt,
        code,
        counts,
      }));
      const begins = (attempt: number) => ({ attempt, code: undefined, counts: undefined });
      const completed = { code: 'completed', counts: undefined };
      const first = [begins(1), { attempt: 1, ...completed, ...mark }];
      expect(marks).to.deep.equal(mark?.counts ? [...first, begins(2), { attempt: 2, ...completed }] : first);
      expect((await scene.job(id)).status).to.equal(mark && !mark.counts ? 'Error' : 'CompletedJob');
      expect(await scene.wrongs([id])).to.deep.equal([]);
    });
  }

  it('a dead node is settled within 5 s after its pod was marked for deletion', async () => {
    const played = await Promise.all(Object.keys(deadRows).flatMap((title) => results.get(title) ?? []));
    const waits = played.map(async ({ id, markedAt }) => {
      const [, ended] = await readAttempts(scene.store, id);
      return markedAt === null ? [] : [(ended?.ended_at ?? Number.POSITIVE_INFINITY) - markedAt];
    });
    const milliseconds = (await Promise.all(waits)).flat();
    expect(milliseconds).to.have.length(6);
    expect(Math.max(...milliseconds)).to.be.at.most(5_000);
  });

  it('nothing is left at all, neither in the cluster nor of files that nobody gets', async () => {
    const ids = (await Promise.all(results.values())).map(({ id }) => id);
    await scene.cleared(30);
    expect(await scene.strayFiles(ids)).to.deep.equal([]);
  });

  it('more important pods take its place', async () => {
    const { admin } = scene.cluster;
    const id = await scene.submit((attempt) => (attempt === 1 ? {} : undefined));
    const { spec } = await scene.runningPod(id);
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
    expect((await scene.ended(id, 60)).status).to.equal('CompletedJob');
    const [, ended] = await readAttempts(scene.store, id);
    expect(ended).to.include(lost);
    await scene.cleared(30);
  });

  for (const isReleased of [false, true]) {
    it(`the cluster clears away what has ended${isReleased ? ', and a person its pod,' : ''} while nobody leads`, async () => {
      let deliver: (() => Promise<Ending>) | undefined;
      const id = await scene.submit((attempt, delivers) => {
        deliver ??= delivers;
        return attempt === 1 ? {} : undefined;
      });
      const pod = await scene.runningPod(id);
      const path = `${pods}/${pod.metadata.name}`;
      const { admin } = scene.cluster;
      await controller.end('SIGKILL');
      await admin.ask('PATCH', `${jobs}/${attemptNameOf(id, 1)}`, { spec: { ttlSecondsAfterFinished: 1 } }, merge);
      scene.kubelet.end(pod.metadata.name, (await deliver?.()) ?? endings.success());
      const job = () => admin.ask('GET', `${jobs}/${attemptNameOf(id, 1)}`);
      await until(async () => (await job()).metadata.deletionTimestamp !== undefined, 30, 'its Job is to be deleted');
      if (isReleased) await admin.ask('PATCH', path, { metadata: { finalizers: null } }, merge);
      controller = await startTestController(scene);
      const { status } = await scene.ended(id, 60);
      expect(status).to.equal('CompletedJob');
      expect(await scene.wrongs([id])).to.deep.equal([]);
      const [, ended] = await readAttempts(scene.store, id);
      expect(ended).to.include(isReleased ? lost : { code: 'completed' });
      await scene.cleared(30);
    });
  }
});
