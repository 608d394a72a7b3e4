import { object, ref, type Schema } from '../model/answer-schemas.ts';
import { batchPageSize, batchParameters } from '../model/batch.ts';
import type { ParameterTable } from '../model/parameter-kinds.ts';
import { maxBatchItems } from '../model/request-limits.ts';
import { batchPageParameters, creditParameters } from '../model/request-parameters.ts';
import { creditRefusals, keyedRefusals, type OperationRow } from './openapi-row.ts';

export const batchRows = {
  batches: {
    POST: {
      id: 'startBatch',
      tag: 'Batches',
      summary: 'Start up to 1,000 jobs at once, or a playlist',
      description:
        `Every one of the 1 to ${maxBatchItems} items is a job, or none is: one wrong item refuses the call and its place is named, and ` +
        'so do too few credits. The call counts once against the rate, and each item against the quotas of the key. The body ' +
        'has at most 2 MiB and is read after the key was judged, so the key cannot be in it. `webhook_url` gets one post when ' +
        'the last job has ended, besides those that the items name. With `playlist` the call lists the playlist of its one item ' +
        'first, for up to 50 s, and is refused as the metadata of that URL would be when it cannot; the list itself is free.',
      headers: ['idempotency-key'],
      body: bodySchema(),
      ok: { 202: ref('AcceptedBatch') },
      errors: [...creditRefusals, 'not_found'],
    },
  },
  batch: {
    GET: {
      id: 'getBatch',
      tag: 'Batches',
      summary: 'Show a batch',
      description:
        `Its counts, and ${batchPageSize} of its jobs in the order of the items; \`next_cursor\` leads to the next ones. It is ` +
        'Running until every job has ended.',
      tables: [batchPageParameters],
      ok: { 200: ref('Batch') },
      errors: [...keyedRefusals, 'not_found'],
    },
    DELETE: {
      id: 'deleteBatch',
      tag: 'Batches',
      summary: 'Cancel the open jobs of a batch',
      description: 'A job that has completed stays, and so does its charge. Repeating the call changes nothing.',
      ok: { 200: ref('Batch') },
      errors: [...keyedRefusals, 'not_found'],
    },
  },
} satisfies Record<string, Record<string, OperationRow>>;

/** Returns the body of the POST; what an item may hold besides its URL depends on the endpoint. */
function bodySchema(): Schema {
  const top = schemasOf(batchParameters);
  const item = schemasOf({ ...creditParameters.audio, ...creditParameters.video });
  const items = {
    description:
      'Parameters of each job, as the endpoint takes them; with `playlist` one item, whose `query` is the playlist.',
    ...{ type: 'array', minItems: 1, maxItems: maxBatchItems },
    items: object(item, without(item, ['query'])),
  };
  return object({ ...top, items }, without(top, ['endpoint']));
}

function schemasOf(table: ParameterTable): Record<string, Schema> {
  return Object.fromEntries(Object.entries(table).map(([name, { schema }]) => [name, schema]));
}

function without(all: object, names: readonly string[]): string[] {
  return Object.keys(all).filter((name) => !names.includes(name));
}
