import { refuse } from '../base/errors.ts';
import { writeTime } from '../model/timestamp.ts';
import { findAccount } from '../store/accounts/read-accounts.ts';
import {
  listDeliveries,
  readDelivery,
  readOutgoingWebhook,
  type StoredDelivery,
} from '../store/webhooks/read-deliveries.ts';
import { replayWebhook } from '../store/webhooks/replay-webhook.ts';
import { command } from './command.ts';
import { flag, jobId, slug, wholeNumber } from './command-values.ts';
import { fieldText, listResult, timeText } from './text-table.ts';

type ShownDelivery = StoredDelivery & { readonly url: string };

const json = '{job, url, status, attempts, last_status, next_at}';

export const webhookCommands = [
  command({
    group: 'webhook',
    verb: 'list',
    text: 'Lists the webhooks of an account with the state of their delivery, newest first.',
    json: `[${json}]`,
    operands: { SLUG: slug },
    options: {
      failed: { read: flag, text: 'Only webhooks whose last attempt has failed.' },
      limit: { value: 'N', read: wholeNumber(1, 10_000), text: 'Most webhooks; 100 unless given.' },
    },
    run: async (given, { store }) => {
      const account = await findAccount(store, given.SLUG);
      const deliveries = await listDeliveries(store, account, given.limit ?? 100, given.failed ?? false);
      const rowOf = ({ jobId: job, state: status, attempts, last_status: answer, next_at, url }: ShownDelivery) => {
        return { job, status, attempts, answer, 'next (UTC)': timeText(next_at), url };
      };
      return listResult(deliveries, shapeOf, rowOf, 'There are no webhooks.');
    },
  }),
  command({
    group: 'webhook',
    verb: 'replay',
    text: 'Delivers the webhook of a job again with its present content, after its delivery has ended.',
    json,
    operands: { JOB: { read: jobId, text: 'Id of the job.' } },
    run: async (given, { store }) => {
      await replayWebhook(store, given.JOB);
      const [delivery, outgoing] = [await readDelivery(store, given.JOB), await readOutgoingWebhook(store, given.JOB)];
      if (delivery === null || outgoing === null) throw refuse('not_found', `There is no job ${given.JOB}`);
      const value = shapeOf({ ...delivery, url: outgoing.url });
      return { value, text: fieldText(value) };
    },
  }),
];

function shapeOf({ jobId, url, state, attempts, last_status, next_at }: ShownDelivery) {
  return { job: jobId, url, status: state, attempts, last_status, next_at: writeTime(next_at) };
}
