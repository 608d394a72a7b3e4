import { nullWhen, refuse } from '../base/errors.ts';
import { writeTime } from '../model/timestamp.ts';
import { findAccount } from '../store/accounts/read-accounts.ts';
import { readBatch } from '../store/batches/read-batch.ts';
import { noteOperation } from '../store/note-operation.ts';
import type { RecordStore } from '../store/script.ts';
import {
  type ListedDelivery,
  listDeliveries,
  readDelivery,
  readOutgoingWebhook,
} from '../store/webhooks/read-deliveries.ts';
import { replayWebhook } from '../store/webhooks/replay-webhook.ts';
import { command } from './command.ts';
import { flag, jobId, slug, wholeNumber } from './command-values.ts';
import { fieldText, listResult, timeText } from './text-table.ts';

const json = '{job, kind, url, status, attempts, last_status, next_at}';

export const webhookCommands = {
  'webhook list': command({
    text: 'Lists the webhooks of an account with the state of their delivery, newest first. With the kind batch, job is the id of the batch.',
    json: `[${json}]`,
    operands: { SLUG: slug },
    options: {
      failed: { read: flag, text: 'Only webhooks whose last attempt has failed.' },
      limit: { value: 'N', read: wholeNumber(1, 10_000), text: 'Most webhooks; 100 unless given.' },
    },
    run: async (given, { store }) => {
      const account = await findAccount(store, given.SLUG);
      const deliveries = await listAll(store, account, given.limit ?? 100, given.failed ?? false);
      const rowOf = ({ id: job, kind, state: status, attempts, last_status: answer, next_at, url }: ListedDelivery) => {
        return { job, kind, status, attempts, answer, 'next (UTC)': timeText(next_at), url };
      };
      return listResult(deliveries, shapeOf, rowOf, 'There are no webhooks.');
    },
  }),
  'webhook replay': command({
    text: 'Delivers the webhook of a job or a batch again with its present content, after its delivery has ended.',
    json,
    operands: { JOB: { read: jobId, text: 'Id of the job or the batch.' } },
    run: async (given, { store, seal }) => {
      await replayWebhook(store, given.JOB, await seal().catch(nullWhen('unavailable')));
      const [delivery, outgoing] = [await readDelivery(store, given.JOB), await readOutgoingWebhook(store, given.JOB)];
      if (delivery === null || outgoing === null) throw refuse('not_found', `There is no job ${given.JOB}`);
      const { about } = outgoing;
      const kind = 'job' in about ? 'job' : 'batch';
      const accountId = 'job' in about ? about.job.account : (await readBatch(store, given.JOB))?.account;
      await noteOperation(store, accountId ?? '', { action: 'webhook.replay', target: given.JOB });
      const value = shapeOf({ ...delivery, kind, url: outgoing.url });
      return { value, text: fieldText(value) };
    },
  }),
};

/** Lists page by page up to the limit: one page of failed webhooks looks through some of all webhooks only. */
async function listAll(store: RecordStore, accountId: string, limit: number, failedOnly: boolean) {
  const found: ListedDelivery[] = [];
  for (let after = null; ; ) {
    const wanted = { limit: limit - found.length, failedOnly, after };
    const { deliveries, next } = await listDeliveries(store, accountId, wanted);
    found.push(...deliveries);
    if (next === null || found.length === limit) return found;
    after = next;
  }
}

function shapeOf({ id, kind, url, state, attempts, last_status, next_at }: ListedDelivery) {
  return { job: id, kind, url, status: state, attempts, last_status, next_at: writeTime(next_at) };
}
