import { randomBytes } from 'node:crypto';
import { writeCursor } from '../api/free-call.ts';
import { readJobCursor } from '../api/job-routes.ts';
import { readOwnJob } from '../api/job-view.ts';
import type { ApiReply } from '../api/reply.ts';
import { refuse } from '../base/errors.ts';
import type { Seal } from '../base/seal.ts';
import { parseJobId } from '../model/request-parameters.ts';
import { writeTime } from '../model/timestamp.ts';
import { setAccount } from '../store/accounts/set-account.ts';
import { readBatch } from '../store/batches/read-batch.ts';
import type { RecordStore } from '../store/script.ts';
import { isSigned, listDeliveries } from '../store/webhooks/read-deliveries.ts';
import { replayWebhook } from '../store/webhooks/replay-webhook.ts';
import { changeRoute, type DashboardCall, type DashboardRoute, readRoute } from './dashboard-app.ts';

const shownDeliveries = 100;

/** Routes about the webhooks of an account: what was delivered, sending it again, the secret that signs it. */
export function deliveryRoutes(seal: Seal): DashboardRoute[] {
  return [
    readRoute('/api/webhooks', showDeliveries),
    changeRoute('POST', '/api/webhooks/:id/replay', 'webhooks', async ({ req, store, accountId }) => {
      const id = parseJobId(String(req.params.id));
      const isOwn = id.ok && (await isOfAccount(store, accountId, id.jobId));
      if (!isOwn) throw refuse('not_found', 'There is no such job or batch');
      await replayWebhook(store, id.jobId, seal);
      return { status: 200, body: { replayed: id.jobId } };
    }),
    changeRoute('POST', '/api/webhooks/secret', 'webhooks', async ({ store, accountId }) => {
      const secret = `whsec_${randomBytes(32).toString('base64')}`;
      await setAccount(store, accountId, { webhook_secret: seal.seal('webhook_secret', secret) });
      return { status: 201, body: { webhook_secret: secret } };
    }),
    changeRoute('DELETE', '/api/webhooks/secret', 'webhooks', async ({ store, accountId }) => {
      // Removals have no limit of their own: without a secret there is no change to note.
      if (await isSigned(store, accountId)) await setAccount(store, accountId, { webhook_secret: null });
      return { status: 200, body: { removed: true } };
    }),
  ];
}

async function showDeliveries({ req, store, accountId }: DashboardCall): Promise<ApiReply> {
  const { failed, cursor } = req.query;
  const after = cursor === undefined ? null : readJobCursor(String(cursor));
  if (accountId === '') return { status: 200, body: { webhooks: [], signed: false, next_cursor: null } };
  const [{ deliveries, next }, signed] = await Promise.all([
    listDeliveries(store, accountId, { limit: shownDeliveries, failedOnly: failed === 'true', after }),
    isSigned(store, accountId),
  ]);
  const webhooks = deliveries.map(({ id, kind, url, state, attempts, last_status, next_at, last_at }) => {
    return {
      job: id,
      kind,
      url,
      status: state,
      attempts,
      last_status,
      next_at: writeTime(next_at),
      last_at: writeTime(last_at),
    };
  });
  return { status: 200, body: { webhooks, signed, next_cursor: next && writeCursor(next.created_at, next.id) } };
}

async function isOfAccount(store: RecordStore, accountId: string, id: string): Promise<boolean> {
  if ((await readOwnJob(store, accountId, id)) !== null) return true;
  return accountId !== '' && (await readBatch(store, id))?.account === accountId;
}
