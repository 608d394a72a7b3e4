import { text } from '../model/answer-schemas.ts';
import { idempotencyParameters } from '../model/request-parameters.ts';
import { publicRefusals, type RequestHeader } from './openapi-row.ts';

const whole = { type: 'integer', minimum: 0 };

/** Headers of answers, as components of the document. */
export const answerHeaders = {
  'x-request-id': {
    description: 'Id of the request, to quote to the operator; that of the caller is kept',
    schema: text,
  },
  'x-error-code': {
    description: 'Stable code of an error; docs/errors.md may gain more',
    schema: { ...text, 'x-extensible-enum': publicRefusals },
  },
  'x-original-status': { description: 'The real status of an error under soft_fail', schema: whole },
  'x-credits-held': { description: 'Credits held by the open jobs and calls of the account', schema: whole },
  location: { description: 'Path of the job or the batch', schema: text },
  ratelimit: { description: 'Requests left in each window of the plan', schema: text },
  'ratelimit-policy': { description: 'Limits of the plan', schema: text },
  'retry-after': { description: 'Seconds to wait before the call is repeated', schema: whole },
} as const;

type AnswerHeader = keyof typeof answerHeaders;

const limits: readonly AnswerHeader[] = ['ratelimit', 'ratelimit-policy'];

/** Returns references to the headers that an answer with this status may have. */
export function headersOf(status: string, isOpen: boolean, isSoft: boolean): object {
  const isError = Number(status) >= 400;
  const names: AnswerHeader[] = ['x-request-id'];
  if (!isOpen) names.push(...limits);
  if (isError || isSoft) names.push('x-error-code');
  if (isSoft) names.push('x-original-status', 'retry-after');
  if (['401', '403', '409', '429', '503'].includes(status)) names.push('retry-after');
  if (status === '202') names.push('location', 'x-credits-held');
  if (status === '307') names.push('location');
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const { description, ...schema } = idempotencyParameters.idempotency_key.schema;

export const requestHeaders: Readonly<Record<RequestHeader, object>> = {
  'idempotency-key': requestHeader('Idempotency-Key', String(description), 'order-17', schema),
  'last-event-id': requestHeader('Last-Event-ID', 'The id of the last event that the caller has seen.', '3'),
  range: requestHeader('Range', 'One part of the file.', 'bytes=0-1023'),
};

function requestHeader(name: string, description: string, example: string, schema: object = text): object {
  return { name, in: 'header', description, schema: { ...schema, examples: [example] } };
}
