import { ref, text } from '../model/answer-schemas.ts';
import { maxWebhookAttempts } from '../model/webhook-attempts.ts';
import { batchWebhookExample, webhookExamples, webhookTestExample } from './openapi-examples.ts';

const signed = 'Only when the operator gave the account a signing secret (Standard Webhooks).';

function header(name: string, description: string): object {
  return { name, in: 'header', required: false, description, schema: text };
}

const signature = (of: string) => [
  header('webhook-id', `Id of the ${of}. ${signed}`),
  header('webhook-timestamp', `Seconds since 1970. ${signed}`),
  header('webhook-signature', `\`v1,\` and the HMAC-SHA256 of \`id.timestamp.body\` as base64. ${signed}`),
];
const parameters = (of: string) => [
  ...signature(of),
  header(
    'x-trawl-replayed',
    '`true` when the service was restored from a backup since: the same end may have been posted before.',
  ),
  header('traceparent', `Trace of the ${of} (W3C Trace Context), where the operator records traces.`),
];
const responses = {
  '2XX': { description: 'The receiver has it' },
  default: { description: 'The post is repeated' },
};

type PostRow = Readonly<Record<'summary' | 'description', string>> & { parameters: object[]; content: object };

function post(operationId: string, row: PostRow, answers: object = responses) {
  const { summary, description, parameters, content } = row;
  const requestBody = { required: true, content: { 'application/json': content } };
  const request = { operationId, tags: ['Webhooks'], summary, description, security: [], parameters, requestBody };
  return { post: { ...request, responses: answers } };
}

/** Requests that the service sends: the end of a download or a batch, to the `webhook_url` of its call, and tests of receivers. */
export const webhooks = {
  batchEnded: post('batchEnded', {
    summary: 'The last job of a batch has ended',
    description: 'Posted to the `webhook_url` of a batch within half a minute, like the end of a download.',
    parameters: parameters('batch'),
    content: { schema: ref('WebhookBatch'), example: batchWebhookExample },
  }),
  jobEnded: post('jobEnded', {
    summary: 'A download has ended',
    description:
      'Posted to the `webhook_url` of a download, after the charge. The receiver answers 2xx within 10 seconds; redirects ' +
      `are not followed. Otherwise the post is repeated, up to ${maxWebhookAttempts} attempts in all, 5 seconds apart, so a receiver may see ` +
      'the same `id` twice. The header `Authorization` is the `webhook_authorization` of the call.',
    parameters: parameters('job'),
    content: { schema: { oneOf: [ref('WebhookCompleted'), ref('WebhookFailed')] }, examples: webhookExamples },
  }),
  receiverTested: post(
    'receiverTested',
    {
      summary: 'A person tests a receiver',
      description:
        'Posted once, when a person of the account asks for it on the dashboard: to an address that they give, or to the ' +
        '`webhook_url` of a download with its `webhook_authorization`. It tells of no job.',
      parameters: [...signature('test'), header('x-trawl-test', 'Always `true`.')],
      content: { schema: ref('WebhookTest'), example: webhookTestExample },
    },
    { default: { description: 'The person is told what came back' } },
  ),
};
