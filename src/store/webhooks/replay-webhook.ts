import { refuse } from '../../base/errors.ts';
import type { Seal } from '../../base/seal.ts';
import { readEnd } from '../jobs/ended-job.ts';
import { type RecordStore, run, script } from '../script.ts';
import { openSealed, readOutgoingWebhook } from './read-deliveries.ts';

/**
 * Makes an ended delivery due again, as if nothing had been sent; its id stays. Answers {'replayed'},
 * {'not_ended'} while attempts are left, or {'not_found'}.
 */
const replayWebhookScript = script(
  'replay-webhook',
  'needs memory',
  ['endedJob', 'batch', 'webhooks', 'webhook'],
  ['jobId'],
)`${readEnd}
local words = read_end()
local receiver = words and words.receiver or redis.call('HGET', batch, 'receiver')
local state = redis.call('HGET', webhook, 'state')
if not receiver or receiver == '' or not state then return { 'not_found' } end
if state == 'due' then return { 'not_ended' } end
redis.call('ZADD', webhooks, now, receiver .. '/' .. jobId)
redis.call('HSET', webhook, 'state', 'due', 'attempts', 0, 'last_status', '', 'next_at', now, 'last_at', '')
return { 'replayed' }
`;

/** Makes the ended delivery of a job or a batch due again, unless the seal, where it is known, shows that it can only fail. */
export async function replayWebhook(store: RecordStore, id: string, seal: Pick<Seal, 'open'> | null): Promise<void> {
  const webhook = seal && (await readOutgoingWebhook(store, id));
  if (webhook) refuseLost(openSealed(webhook, seal));
  const [word] = await run(store, replayWebhookScript, { jobId: id, batchId: id });
  if (word === 'not_found') throw refuse('not_found', `There is no delivery of a webhook for ${id}`);
  if (word === 'not_ended') throw refuse('not_ended', 'The delivery has not ended yet');
}

function refuseLost({ authorization, secret }: ReturnType<typeof openSealed>): void {
  const why = 'cannot be read since the secret of the service was changed';
  if (authorization === null) {
    throw refuse(
      'bad_request',
      `Bad Request: the webhook_authorization ${why}: start a new job or batch that names it`,
    );
  }
  if (secret === null) {
    throw refuse('bad_request', `Bad Request: the webhook secret of the account ${why}: make a new one`);
  }
}
