import { expect } from 'chai';
import { isEnded } from '../../src/model/job.ts';
import { nameOf } from '../../src/runners/runner.ts';
import { readAttempts } from '../../src/store/jobs.ts';
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
  /** What the record says of the first attempt; it ended well when left out. */
  readonly mark?: { readonly code: string; readonly counts: 'failure' | 'interruption' };
}

/** What a person, or a fault, can do to one job's Job, pod and node. */
interface Hand {
  readonly pod: Pod;
  readonly node: string;
  readonly job: string;
  ask(method: string, path: string, body?: object, type?: string): Promise<unknown>;
  cutOff(): void;
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
  hand.cutOff();
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
  'its node is dead and comes back': { act: afterLoss(({ restore }) => restore()), mark: lost },
  'its Job is late and its node dead': {
    act: async (hand) => {
      hand.cutOff();
      await shorten(hand);
    },
    mark: late,
  },
  'its Job is late, its node dead, and a person fails its pod': {
    act: async (hand) => {
      hand.cutOff();
      await shorten(hand);
      await hand.marked();
      // It may be gone already.
      await patchFailed(hand).catch(() => undefined);
    },
    mark: late,
  },
};

describe('every ending of an attempt in a cluster', function () {
  this.timeout(180_000);
  let scene: Scene;
  let controller: TestController;
  const results = new Map<string, Promise<string>>();

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

  async function playRow({ ending, act, mark }: Row): Promise<string> {
    const first = ending ? { runMs: 50, ending } : {};
    const id = await scene.submit((attempt) => (attempt === 1 && mark ? first : undefined));
    if (act) await act(await handOn(id));
    await until(async () => isEnded((await scene.job(id)).status), 120, `${id} ends`);
    return id;
  }

  async function handOn(id: string): Promise<Hand> {
    const pod = await scene.runningPod(id);
    const { admin } = scene.cluster;
    const path = `${pods}/${pod.metadata.name}`;
    return {
      pod,
      node: pod.spec.nodeName ?? '',
      job: nameOf(id, 1),
      ask: (method, at, body, type) => admin.ask(method, at, body, type),
      cutOff: () => scene.kubelet.cutOff(pod.spec.nodeName ?? ''),
      restore: () => scene.kubelet.restore(pod.spec.nodeName ?? ''),
      marked: async () => {
        const isMarked = () =>
          admin.ask<Pod>('GET', path).then(
            ({ metadata }) => metadata.deletionTimestamp !== undefined,
            () => true,
          );
        await until(isMarked, 60, `${path} is to be deleted`);
      },
    };
  }

  for (const [title, { mark }] of Object.entries({ ...rows, ...deadRows })) {
    it(title, async () => {
      const id = (await results.get(title)) ?? '';
      const [begun, ended] = await readAttempts(scene.store, id);
      expect(begun).to.include({ attempt: 1 });
      expect(ended).to.include({ attempt: 1, ...(mark ?? { code: 'completed' }) });
      expect((await scene.job(id)).status).to.equal('CompletedJob');
    });
  }

  it('each is charged once, and nothing is left of any', async () => {
    const ids = await Promise.all(results.values());
    expect(await scene.wrongs(ids)).to.deep.equal([]);
    await scene.cleared(30);
  });

  for (const isReleased of [false, true]) {
    it(`the cluster clears away what has ended${isReleased ? ', and a person its pod,' : ''} while nobody leads`, async () => {
      const ends = new Map<number, Ending>();
      const id = await scene.submit((attempt, delivers) => {
        ends.set(attempt, delivers);
        return attempt === 1 ? {} : undefined;
      });
      const pod = await scene.runningPod(id);
      const path = `${pods}/${pod.metadata.name}`;
      const { admin } = scene.cluster;
      controller.process.kill('SIGSTOP');
      await admin.ask('PATCH', `${jobs}/${nameOf(id, 1)}`, { spec: { ttlSecondsAfterFinished: 1 } }, merge);
      scene.kubelet.end(pod.metadata.name, ends.get(1) ?? endings.success());
      const job = () => admin.ask('GET', `${jobs}/${nameOf(id, 1)}`);
      await until(async () => (await job()).metadata.deletionTimestamp !== undefined, 30, 'its Job is to be deleted');
      if (isReleased) await admin.ask('PATCH', path, { metadata: { finalizers: null } }, merge);
      controller.process.kill('SIGCONT');
      const { status } = await scene.ended(id, 60);
      expect(status).to.equal('CompletedJob');
      expect(await scene.wrongs([id])).to.deep.equal([]);
      const [, ended] = await readAttempts(scene.store, id);
      expect(ended).to.include(isReleased ? lost : { code: 'completed' });
      await scene.cleared(30);
    });
  }
});
