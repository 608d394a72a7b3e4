import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeOpenapi } from '../src/api/openapi.ts';
import { failures, type RefusalCode, refusals } from '../src/base/errors.ts';

// Writes into the folder that is named: the part of the OpenAPI document that callers' types come from, and both tables of
// error codes. `clients/generate` runs the generators on it.

interface JsonSchema {
  readonly [member: string]: unknown;
}

interface ApiDocument {
  readonly openapi: string;
  readonly info: object;
  readonly paths: Readonly<Record<string, { readonly post?: PostOperation }>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> };
}

interface PostOperation {
  readonly requestBody: { readonly content: { readonly 'application/json': { readonly schema: JsonSchema } } };
}

const bodies = {
  VideoRequest: '/v1/video/download',
  AudioRequest: '/v1/audio/download',
  MetadataRequest: '/v1/media/metadata',
  BatchRequest: '/v1/batches',
};
/** Returns a document that has nothing but whole answers, and the bodies of requests under names of their own. */
function documentOfCallers(): object {
  const { openapi, info, paths, components } = makeOpenapi('https://trawl.example') as ApiDocument;
  const answers = Object.entries(components.schemas).filter(([name]) => !name.endsWith('Part'));
  const requests = Object.entries(bodies).map(([name, path]) => {
    const schema = paths[path]?.post?.requestBody.content['application/json'].schema;
    if (schema === undefined) throw new Error(`the document has no POST ${path}`);
    return [name, schema];
  });
  return { openapi, info, paths: {}, components: { schemas: Object.fromEntries([...answers, ...requests]) } };
}

/** Returns blame and retryability of every code that an answer or a job may have. */
function codesOfCallers(): [string, string, boolean][] {
  const refused = (Object.keys(refusals) as RefusalCode[]).map((code): [string, string, boolean] => {
    const isOurs = refusals[code].status >= 500;
    // What may pass by itself: clients repeat the call.
    return [code, isOurs ? 'us' : 'caller', isOurs || code === 'rate_limited'];
  });
  const failed = Object.entries(failures).map(([code, { blame, retryable }]): [string, string, boolean] => {
    return [code, blame, retryable];
  });
  return [...refused, ...failed].sort(([one], [other]) => (one < other ? -1 : 1));
}

const [folder = ''] = process.argv.slice(2);
const origin = 'Written by clients/generate; do not edit.';
const codes = codesOfCallers();
const rows = (line: (code: string, blame: string, isRetryable: boolean) => string) =>
  codes.map((row) => `${line(...row)}\n`).join('');
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, 'openapi.json'), JSON.stringify(documentOfCallers()));
writeFileSync(
  join(folder, 'error-codes.ts'),
  `// ${origin}

/** Every code of a refused call or a failed job, with its cause and whether it may pass by itself. */
export const errorCodes = {
${rows((code, blame, isRetryable) => `  ${code}: { blame: '${blame}', retryable: ${isRetryable} },`)}} as const;
`,
);
writeFileSync(
  join(folder, 'error_codes.py'),
  `# ${origin}
"""Every code of a refused call or a failed job, with its cause and whether it may pass by itself."""

ERROR_CODES: dict[str, tuple[str, bool]] = {
${rows((code, blame, isRetryable) => `    "${code}": ("${blame}", ${isRetryable ? 'True' : 'False'}),`)}}
`,
);
