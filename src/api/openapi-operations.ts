import type { RefusalCode } from '../base/errors.ts';
import { object, ref, text } from '../model/answer-schemas.ts';
import {
  creditParameters,
  historyParameters,
  listParameters,
  pollParameters,
  statsParameters,
  usageParameters,
} from '../model/request-parameters.ts';
import { maxHistoryDays } from '../model/usage-history.ts';
import { batchRows } from './openapi-batches.ts';
import { creditRefusals, keyedRefusals, type OperationRow } from './openapi-row.ts';
import type { RouteName, routes } from './routes.ts';

type OperationTable = { readonly [N in RouteName]: Record<(typeof routes)[N]['methods'][number], OperationRow> };

const accepted = { 202: ref('Accepted') };
const jobText =
  'The answer is the id of a job: wait for its end by `getJob` with `wait`, by `streamJobEvents` or by a webhook. ' +
  'With an `Idempotency-Key` the call may be repeated safely for 24 hours.';
const inBody = 'The same as the GET, with the parameters in a JSON body of at most 16 KiB; those of the body win.';

const messageId = {
  description: 'Absent in a notification, which has no answer.',
  anyOf: [text, { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }],
};

/** Returns the GET and the POST of a route that costs a credit. */
function creditRows(row: Omit<OperationRow, 'errors' | 'headers'>, more: readonly RefusalCode[] = []) {
  const GET: OperationRow = { ...row, headers: ['idempotency-key'], errors: [...creditRefusals, ...more] };
  const summary = `${row.summary} (parameters in the body)`;
  return { GET, POST: { ...GET, id: `${row.id}ByPost`, summary, description: `${inBody} ${row.description}` } };
}

/** Returns the GET of something that the service shows to anybody. */
function pageRow(id: string, summary: string, description: string, kind: 'page' | 'file'): OperationRow {
  return {
    id,
    tag: 'Service',
    summary,
    description,
    ok: { 200: kind },
    errors: ['method_not_allowed', 'rate_limited'],
  };
}

export const operations: OperationTable = {
  video: creditRows({
    id: 'downloadVideo',
    tag: 'Downloads',
    summary: 'Start a video download',
    description: `Costs one credit when the job completes. ${jobText}`,
    tables: [creditParameters.video],
    ok: accepted,
  }),
  audio: creditRows({
    id: 'downloadAudio',
    tag: 'Downloads',
    summary: 'Start an audio download',
    description: `Costs one credit when the job completes. ${jobText}`,
    tables: [creditParameters.audio],
    ok: accepted,
  }),
  metadata: creditRows(
    {
      id: 'readMetadata',
      tag: 'Metadata',
      summary: 'Read the metadata of a media URL',
      description:
        'Costs one credit when it succeeds. The answer always has the same 19 fields; one that the source does not give ' +
        'is null. It may take up to a minute. With `is_async` it starts a job instead, whose result has no file.',
      tables: [creditParameters.metadata],
      ok: { 200: object({ metadata: ref('Metadata') }), ...accepted },
    },
    ['not_found'],
  ),
  jobs: {
    GET: {
      id: 'listJobs',
      tag: 'Jobs',
      summary: 'List the jobs of the account',
      description: 'Newest first, whichever key started them. `next_cursor` leads to the next page.',
      tables: [listParameters],
      ok: { 200: ref('JobList') },
      errors: keyedRefusals,
    },
  },
  job: {
    GET: {
      id: 'getJob',
      tag: 'Jobs',
      summary: 'Show a job',
      description:
        'With `wait` the answer comes when the job ends, or after that many seconds. The end is one of CompletedJob, ' +
        'Error, NotFound and BadRequest. Each answer signs a new link to the file.',
      tables: [pollParameters],
      ok: { 200: ref('Job') },
      errors: [...keyedRefusals, 'not_found'],
    },
    DELETE: {
      id: 'deleteJob',
      tag: 'Jobs',
      summary: 'Cancel a job, or remove its file',
      description:
        'An open job ends at once as Error with the code `cancelled`, and costs nothing. Of an ended job the file is ' +
        'removed, and its links are revoked. Repeating the call changes nothing.',
      ok: { 200: ref('Job') },
      errors: [...keyedRefusals, 'not_found'],
    },
  },
  retry: {
    POST: {
      id: 'retryJob',
      tag: 'Jobs',
      summary: 'Start a job again',
      description:
        'Starts a new job with the parameters of one that has ended, its webhook included. It costs what the first did.',
      headers: ['idempotency-key'],
      ok: accepted,
      errors: [...creditRefusals, 'not_found', 'not_ended'],
    },
  },
  events: {
    GET: {
      id: 'streamJobEvents',
      tag: 'Jobs',
      summary: 'Stream the changes of a job',
      description:
        'Server-sent events: `progress` with the job at each change, then `end` with the job at its end, which closes ' +
        'the stream. A client that lost its connection goes on by `Last-Event-ID`.',
      headers: ['last-event-id'],
      ok: { 200: 'stream' },
      errors: [...keyedRefusals, 'not_found'],
    },
  },
  ...batchRows,
  usage: {
    GET: {
      id: 'getUsage',
      tag: 'Account',
      summary: 'Show balances, limits and the calling key',
      description:
        'A call is admitted while `remaining - held` is at least 1. An answer of 200 tells that the key works.',
      tables: [usageParameters],
      ok: { 200: { anyOf: [ref('Usage'), ref('ReducedUsage')] } },
      errors: keyedRefusals,
    },
  },
  history: {
    GET: {
      id: 'getUsageHistory',
      tag: 'Account',
      summary: 'Show what became of the requests, by day and key',
      description:
        `Up to ${maxHistoryDays} days. A job counts on the day of its end. Days without a request are left out, and so are days ` +
        'that the request log does not hold any more.',
      tables: [historyParameters],
      ok: { 200: ref('UsageHistory') },
      errors: keyedRefusals,
    },
  },
  stats: {
    GET: {
      id: 'getStats',
      tag: 'Account',
      summary: 'Show the health of an engine or a path',
      description: 'The last hour, over all accounts. The operator enables it for each account.',
      tables: [statsParameters],
      ok: { 200: ref('Stats') },
      errors: [...keyedRefusals, 'not_found'],
    },
  },
  mcp: {
    POST: {
      id: 'callMcp',
      tag: 'Agents',
      summary: 'Exchange one message of the Model Context Protocol',
      description:
        'Streamable HTTP without sessions: a JSON-RPC message of at most 64 KiB, answered with a stream of events. The tools ' +
        'are metadata, download, job and usage. The key may also come as `Authorization: Bearer`. A refusal of the key or ' +
        'the rate answers the request, every other one is the result of the tool.',
      body: {
        ...object({ jsonrpc: { const: '2.0' }, id: messageId, method: text, params: { type: 'object' } }, [
          'id',
          'params',
        ]),
        additionalProperties: true,
      },
      ok: { 200: 'messages' },
      errors: [...keyedRefusals, 'payload_too_large'],
      besides: { 202: 'A notification was heard' },
    },
  },
  files: {
    GET: {
      id: 'getFile',
      tag: 'Files',
      summary: 'Fetch the file of a completed job',
      description:
        'The link stands in `result.response` of the job. It is signed, works until `expires_at`, and may lead on to the ' +
        'object store, so a client has to follow redirects.',
      headers: ['range'],
      ok: { 200: 'file', 206: 'file' },
      errors: ['forbidden', 'not_found', 'method_not_allowed', 'rate_limited', 'internal_error', 'unavailable'],
      besides: {
        304: 'The caller has this file',
        307: 'The file is elsewhere, for some minutes',
        410: 'The link has expired, or the file was removed',
        416: 'The file has no such part',
      },
    },
  },
  welcome: {
    GET: pageRow('getWelcome', 'Show what this service is', 'A page for people.', 'page'),
  },
  docs: {
    GET: pageRow(
      'getDocs',
      'Show this document to people',
      'A page that shows the operations and can try them.',
      'page',
    ),
  },
  docsFile: {
    GET: {
      ...pageRow('getDocsFile', 'Fetch a file of these pages', 'Scripts and styles of `/docs`.', 'file'),
      errors: ['not_found', 'method_not_allowed', 'rate_limited'],
    },
  },
  openapi: {
    GET: {
      id: 'getOpenapi',
      tag: 'Service',
      summary: 'Show this document',
      description: 'OpenAPI 3.1, made from the tables and schemas that check requests.',
      ok: { 200: { type: 'object' } },
      errors: ['method_not_allowed', 'rate_limited'],
    },
  },
};
