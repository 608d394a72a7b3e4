import { randomUUID } from 'node:crypto';
import { refuse } from '../base/errors.ts';
import type { AddressException } from '../base/settings/kinds.ts';
import { judgeWebhookUrl, maxWebhookUrlLength } from '../model/public-address.ts';
import type { RecordStore } from '../store/script.ts';
import { askForTest, maxTestsPerMinute, readTest } from '../store/webhooks/receiver-tests.ts';
import { changeRoute, type DashboardCall, type DashboardRoute, readRoute } from './dashboard-app.ts';
import { requireText } from './given-values.ts';
import { requireJob } from './job-history-routes.ts';

const tooMany = `This account asked for ${maxTestsPerMinute} tests within a minute, which is the limit: try again later`;

/**
 * Routes about tests of receivers: a controller sends them, because only it may reach the proxy for addresses of callers. A test changes
 * nothing of the account, so the audit log has no entry of it. `exceptions`: addresses that are open though they are not public.
 */
export function receiverTestRoutes(exceptions: readonly AddressException[]): DashboardRoute[] {
  return [
    changeRoute('POST', '/api/webhooks/tests', 'webhooks', async (call) => {
      const { store, accountId } = call;
      const receiver = Object.hasOwn(call.given, 'job')
        ? await receiverOfJob(store, accountId, requireText(call.given, 'job', 100))
        : { url: readUrl(call, exceptions), authorization: '' };
      const id = randomUUID();
      const waitMs = await askForTest(store, { id, account: accountId, ...receiver });
      if (waitMs !== null) throw refuse('rate_limited', tooMany, Math.ceil(waitMs / 1000));
      return { status: 202, body: { test: id } };
    }),
    readRoute('/api/webhooks/tests/:id', async ({ req, store, accountId }) => {
      const test = accountId === '' ? null : await readTest(store, accountId, String(req.params.id));
      if (test === null) throw refuse('not_found', 'Nothing came back from this test: send another one');
      return { status: 200, body: test };
    }),
  ];
}

function readUrl({ given }: DashboardCall, exceptions: readonly AddressException[]): string {
  const judged = judgeWebhookUrl(requireText(given, 'url', maxWebhookUrlLength), exceptions);
  if (!judged.ok) throw refuse('bad_request', `Bad Request: url ${judged.sentence}`);
  return judged.href;
}

/** Returns the receiver that a job of the account names, with the `Authorization` that it gave. */
async function receiverOfJob(store: RecordStore, accountId: string, text: string) {
  const { webhook } = await requireJob(store, accountId, text);
  const { url = '', authorization = '' } = webhook ?? {};
  if (url === '') throw refuse('not_found', 'This job has no webhook');
  return { url, authorization };
}
