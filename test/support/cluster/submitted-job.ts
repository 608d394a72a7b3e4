import { randomBytes } from 'node:crypto';
import { isEnded } from '../../../src/model/job.ts';
import { readSnapshot } from '../../../src/store/accounts/read-snapshot.ts';
import { readLedger } from '../../../src/store/log/read-ledger.ts';
import { readLines } from '../../../src/store/log/read-lines.ts';
import { verifyLedger } from '../../../src/store/log/verify-ledger.ts';
import { anAccount, anotherKey, type TestStore, theJob } from '../record.ts';
import { readAttempts } from '../stored-job.ts';
import { until } from '../until.ts';
import type { Installation } from './installation.ts';
import { kubectl } from './kubectl.ts';

/** A submitted job with an account of its own, so that the account shows the traces of this job alone. */
export interface SubmittedJob {
  readonly id: string;
  readonly account: string;
  readonly key: string;
}

/** Everything that a job has left behind. */
export interface JobTraces {
  readonly status: string;
  readonly code: string | null;
  readonly failures: number;
  readonly interruptions: number;
  /** The end of each attempt. */
  readonly attempts: readonly string[];
  /** Charges and open holds of the account. */
  readonly charged: number;
  readonly held: number;
  /** Problems of its ledger. */
  readonly problems: readonly string[];
  /** Statuses of its lines in the request log: one for its call, one for its end. */
  readonly lines: readonly number[];
  /** Statuses of the webhooks that came. */
  readonly webhooks: readonly string[];
  /** Keys of its objects without its id, finished or not. */
  readonly objects: readonly string[];
}

/** Makes an account for one job, and the parameters of its call; everything secret in them is a word that is easily found. */
export async function makeSubmission(store: TestStore, query: string, receiver: string) {
  const canary = (name: string) => `Canary${name}${randomBytes(8).toString('hex')}`;
  const [token, place, authorization] = [canary('Query'), canary('Webhook'), canary('Authorization')];
  const { accountId, slug } = await anAccount(store, { credits: 10 });
  const key = await anotherKey(store, accountId);
  const words = new URLSearchParams({
    query: `${query}?token=${token}`,
    webhook_url: `${receiver}/${place}`,
    webhook_authorization: `Bearer ${authorization}`,
  });
  return { order: { account: accountId, key }, words, canaries: [token, place, authorization, slug, key] };
}

/** Waits until a job has ended and nothing of it is in the cluster any more; answers what it has left behind elsewhere. */
export async function readJobTraces(
  installation: Installation,
  { id, account }: SubmittedJob,
  seconds: number,
): Promise<JobTraces> {
  const { store, receiver, s3 } = installation;
  await until(async () => isEnded((await theJob(store, id)).status), seconds, `job ${id} ends`);
  await until(() => receiver.of(id).length > 0, 10, `the webhook of ${id} comes`);
  await until(async () => (await listLeft(installation, id)).length === 0, 10, `nothing of ${id} is in the cluster`);
  const { status, error_code: code, failures, interruptions } = await theJob(store, id);
  const [{ balances }, ledger, { problems }, lines, { objects, uploads }, attempts] = await Promise.all([
    readSnapshot(store, account),
    readLedger(store, account, 100),
    verifyLedger(store, account),
    // Each look of a test at its job is a line too.
    readLines(store, account, 10_000),
    s3.list(),
    readAttempts(store, id),
  ]);
  return {
    ...{ status, code, failures, interruptions, problems: problems.map(String) },
    attempts: attempts.flatMap((mark) => mark.code ?? []),
    charged: ledger.filter((entry) => entry.kind === 'charge' && entry.job === id).length,
    held: balances.held,
    lines: lines.flatMap(({ endpoint, status }) => (endpoint.includes('download') ? [status] : [])).toSorted(),
    webhooks: receiver.of(id).map(({ body }) => body.status),
    objects: [...objects, ...uploads].filter((key) => key.startsWith(id)).map((key) => key.slice(id.length + 1)),
  };
}

/** Names of the Jobs and pods of a job that the cluster has. */
export async function listLeft({ kubeconfig, namespace }: Installation, id: string): Promise<string[]> {
  const words = ['get', 'jobs,pods', '-n', namespace, '-l', `trawl/job=${id}`, '-o', 'name'];
  return (await kubectl({ kubeconfig }, words)).split('\n').filter(Boolean);
}
