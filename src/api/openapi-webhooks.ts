import { ref, text } from '../model/answer-schemas.ts';
import { webhookExamples } from './openapi-examples.ts';

const signed = 'Only when the operator gave the account a signing secret (Standard Webhooks).';

function header(name: string, description: string): object {
  return { name, in: 'header', required: false, description, schema: text };
}

/** Requests that the service sends: the end of a download, to the `webhook_url` of its call. */
export const webhooks = {
  jobEnded: {
    post: {
      operationId: 'jobEnded',
      tags: ['Downloads'],
      summary: 'A download has ended',
      description:
        'Posted to the `webhook_url` of a download, after the charge. The receiver answers 2xx within 10 seconds; redirects ' +
        'are not followed. Otherwise the post is repeated, up to 3 attempts in all, 5 seconds apart, so a receiver may see ' +
        'the same `id` twice. The header `Authorization` is the `webhook_authorization` of the call.',
      security: [],
      parameters: [
        header('webhook-id', `Id of the job. ${signed}`),
        header('webhook-timestamp', `Seconds since 1970. ${signed}`),
        header('webhook-signature', `\`v1,\` and the HMAC-SHA256 of \`id.timestamp.body\` as base64. ${signed}`),
      ],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: { oneOf: [ref('WebhookCompleted'), ref('WebhookFailed')] },
            examples: webhookExamples,
          },
        },
      },
      responses: {
        '2XX': { description: 'The receiver has it' },
        default: { description: 'The post is repeated' },
      },
    },
  },
} as const;
