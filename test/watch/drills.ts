import { keys } from '../../src/store/keys.ts';
import { readLedgerWalk, saveLedgerWalk } from '../../src/store/log/ledger-walk.ts';
import type { Kube } from '../support/cluster/kube.ts';
import { namespace } from '../support/cluster/testbed.ts';
import { freezeProcess } from '../support/freeze-process.ts';
import { until } from '../support/until.ts';
import { type DrillGround, rulesAt } from '../support/watch/drill-ground.ts';

/** A fault that is rehearsed. */
export interface Drill {
  /** Its name in docs/drills.md. */
  readonly name: string;
  /** Alerts that it fires and no other, with the seconds until then on a clock that is not compressed. */
  readonly alerts: Readonly<Record<string, number>>;
  /** Alerts that may fire after the fault is mended. */
  readonly after?: readonly string[];
  /**
   * Query that has an answer once the first event that the rules count has happened, where Kubernetes takes its time before, and the
   * seconds that it takes longer with its usual limits.
   */
  readonly event?: { readonly query: string; readonly moreSeconds: number };
  /** Queries that have an answer while the fault is on, as in the history of its pictures. */
  readonly shows?: readonly string[];
  /** Makes the fault and returns what mends it. */
  readonly make: (ground: DrillGround) => Promise<() => unknown>;
}

const minute = 60;

export const drills: readonly Drill[] = [
  {
    name: 'Redis is away',
    alerts: {
      ...{ TrawlRedisAway: 2 * minute, TrawlNoLeader: 3 * minute, TrawlApiErrors: 6 * minute },
      ...{ TrawlControllerErrors: 10 * minute, TrawlApiErrorsSlow: 20 * minute },
    },
    make: async ({ testbed }) => {
      const info = String(await testbed.redis.connection.send(['INFO', 'server']));
      return freezeProcess(Number(/process_id:(\d+)/.exec(info)?.[1]));
    },
  },
  {
    name: 'The memory of Redis is at 80 %',
    alerts: { TrawlRecordFull: 6 * minute },
    make: async ({ testbed: { redis } }) => {
      const limit = (bytes: number) => redis.connection.send(['CONFIG', 'SET', 'maxmemory', String(bytes)]);
      const info = String(await redis.connection.send(['INFO', 'memory']));
      const [, before] = (await redis.connection.send(['CONFIG', 'GET', 'maxmemory'])) as string[];
      await limit(Math.round(Number(/used_memory:(\d+)/.exec(info)?.[1]) / 0.8));
      return () => limit(Number(before));
    },
  },
  {
    name: 'The object store is away',
    alerts: { TrawlObjectStoreAway: 3 * minute, TrawlUnsettled: 17 * minute },
    make: async (ground) => (await someRun(ground)).s3.lose(),
  },
  {
    name: 'The object store hangs',
    alerts: { TrawlObjectStoreAway: 4 * minute, TrawlUnsettled: 17 * minute },
    make: async (ground) => (await someRun(ground)).s3.freeze(),
  },
  {
    name: 'No controller leads',
    alerts: { TrawlNoLeader: 3 * minute },
    make: async ({ running, start }) => {
      await Promise.all(running('controller').map((part) => part.end('SIGKILL')));
      return async () => {
        for (let n = 0; n < 2; n++) await start('controller');
      };
    },
  },
  {
    name: 'The API server throttles',
    alerts: { TrawlApiServerThrottles: 10 * minute },
    shows: ['sum(rate(trawl_jobs_total{namespace="$namespace"}[5m])) > 0'],
    make: ({ testbed }) => refuseRequests(testbed.cluster.admin),
  },
  {
    name: 'Egress finds no name',
    alerts: { TrawlEgressFails: 18 * minute, TrawlWebhooksFail: 13 * minute },
    make: async ({ dns }) => {
      const { answers } = dns;
      dns.answers = () => [];
      return () => {
        dns.answers = answers;
      };
    },
  },
  {
    name: 'The watch is stale',
    alerts: { TrawlWatchStale: 6 * minute, TrawlControllerErrors: 12 * minute },
    after: ['TrawlJobsStartLate'],
    shows: [
      'sum(rate(trawl_jobs_total{namespace="$namespace"}[5m])) == 0',
      'sum(rate(trawl_charges_total{namespace="$namespace"}[5m])) == 0',
      'sum(rate(trawl_egress_connections_total{namespace="$namespace",verdict="open"}[5m])) < 1',
      'sum(trawl_jobs_open{namespace="$namespace",state="queued"}) > 10',
      'max(trawl_oldest_queued_seconds{namespace="$namespace"}) > 10',
      'sum(rate(trawl_reconcile_errors_total{namespace="$namespace"}[5m])) > 0.5',
    ],
    make: async ({ testbed }) => {
      const { freeze, thaw } = testbed.cluster.parts['kube-apiserver'];
      freeze();
      return thaw;
    },
  },
  {
    name: 'Receivers refuse webhooks',
    alerts: { TrawlWebhooksFail: 13 * minute },
    make: async ({ switches }) => {
      switches.receiverStatus = 500;
      return () => {
        switches.receiverStatus = 200;
      };
    },
  },
  {
    name: 'A ledger has a problem',
    alerts: { TrawlLedgerProblem: 61 * minute },
    make: async (ground) => {
      const { store, account } = ground.testbed;
      const change = (by: number) =>
        store.connection.send(['HINCRBY', keys.account(account), 'credits_given', String(by)]);
      await change(-1);
      await checkLedgersNow(ground);
      return async () => {
        await change(1);
        await checkLedgersNow(ground);
        // Until it has checked them all, the new leader shows what the last check found.
        const isClean = async () => (await ground.prometheus.ask('max(trawl_ledger_problems) == 0')).length > 0;
        await until(isClean, 30, 'the check of all ledgers finds nothing');
      };
    },
  },
  {
    name: 'yt-dlp is 31 days old',
    alerts: { TrawlYtDlpOld: 61 * minute },
    make: async ({ prometheus }) => {
      prometheus.setRules(await rulesAt(prometheus, 31));
      return async () => prometheus.setRules(await rulesAt(prometheus));
    },
  },
  {
    name: 'A node is dead',
    alerts: { TrawlInterruptions: 12 * minute },
    event: {
      query: 'sum(increase(trawl_attempts_total{class="interrupted"}[5s])) > 0',
      // Kubernetes gives up a node that is silent for 50 s, and workers tolerate that for 60 s: here 8 s and 2 s.
      moreSeconds: 50 + 60 - (8 + 2),
    },
    make: loseNode,
  },
  {
    name: 'The clock of Redis moves',
    alerts: { TrawlClockMoved: 1 * minute, TrawlClockDifference: 6 * minute },
    make: async ({ redisClock }) => {
      redisClock.move(3600);
      return () => redisClock.move(0);
    },
  },
];

/** Waits until two workers run: the object store is asked when one ends. */
async function someRun(ground: DrillGround): Promise<DrillGround> {
  await until(() => ground.testbed.kubelet.running().length >= 2, 20, 'two workers run');
  return ground;
}

/** The hourly check of all ledgers is due: another controller begins it, because a leader keeps the time of its last one. */
async function checkLedgersNow({ testbed: { store }, leader, start }: DrillGround): Promise<void> {
  const old = await leader();
  await saveLedgerWalk(store, { ...(await readLedgerWalk(store)), place: null, since: 0 });
  await start('controller');
  await old.end('SIGTERM');
}

/** Gives the controller no seat at the API server, which then answers it with 429. */
async function refuseRequests(admin: Kube): Promise<() => Promise<void>> {
  const group = '/apis/flowcontrol.apiserver.k8s.io/v1';
  const name = 'no-seat';
  await admin.ask('POST', `${group}/prioritylevelconfigurations`, {
    metadata: { name },
    spec: {
      type: 'Limited',
      limited: { nominalConcurrencyShares: 0, lendablePercent: 0, limitResponse: { type: 'Reject' } },
    },
  });
  const subject = { kind: 'ServiceAccount', serviceAccount: { namespace, name: 'trawl-controller' } };
  const all = { verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'], clusterScope: true };
  await admin.ask('POST', `${group}/flowschemas`, {
    metadata: { name },
    spec: {
      priorityLevelConfiguration: { name },
      matchingPrecedence: 2,
      rules: [{ subjects: [subject], resourceRules: [all] }],
    },
  });
  return async () => {
    await admin.ask('DELETE', `${group}/flowschemas/${name}`);
    await admin.ask('DELETE', `${group}/prioritylevelconfigurations/${name}`);
  };
}

/**
 * Nothing is heard any more of the node that runs most pods. Workers take long until it is back: on a slow machine the node is given up
 * late, and what other workers complete until then would hide its share.
 */
async function loseNode({ switches, prometheus, testbed: { kubelet } }: DrillGround): Promise<() => void> {
  switches.isHeld = true;
  const podsOf = (node: string) => kubelet.running().filter((pod) => pod.spec.nodeName === node);
  // A backlog that was just worked off would hide its share, too: half an hour of usual rules is a minute here.
  const find = async () => {
    const [ended] = await prometheus.ask('sum(increase(trawl_attempts_total[1m]))');
    const enough = Math.max(12, Number(ended?.value[1] ?? 0) / 2);
    return kubelet.nodes.find((node) => podsOf(node).length >= enough);
  };
  const lost = (await until(find, 60, 'a node runs so many workers that its loss is seen')) as string;
  kubelet.cutOff(lost);
  return () => {
    switches.isHeld = false;
    kubelet.restore(lost);
    for (const pod of kubelet.running()) kubelet.end(pod.metadata.name, { exitCode: 143 });
  };
}
