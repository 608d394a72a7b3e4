import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configTable } from '../base/config.ts';
import { failures, refusals } from '../base/errors.ts';
import { tableOf } from '../base/markdown-table.ts';
import { metricsTable } from '../base/metrics.ts';
import { commands } from './commands.ts';
import { commandsPage } from './commands-page.ts';

/** Returns every generated page of docs by the name of its file. */
export function makeDocs(): Record<string, string> {
  return {
    'commands.md': commandsPage(commands),
    'config.md': `# Settings

Every setting is an environment variable; one that is not set or empty has its default.
An unknown name that begins with \`TRAWL_\`, a wrong value or a contradiction stops the start, and all problems are told at once.
A secret may come from a file: \`NAME_FILE\` then holds the path, and \`NAME\` must not be set.

${configTable()}`,
    'errors.md': `# Errors

A request that is not carried out is answered with a refusal: its code stands in the header \`x-error-code\`, its sentence in the body.
A job that ends without a file has a failure: its code stands in \`error_code\`, its sentence in \`error\`. No failure is charged.

## Refusals

${tableOf(
  ['Code', 'Status', 'Sentence'],
  Object.entries(refusals).map(([code, { status, sentence }]) => [`\`${code}\``, status, sentence]),
)}
## Failures

The blame says who caused it: the caller, the site of the source, or us. A retryable failure may pass, so the job is tried again.

${tableOf(
  ['Code', 'Blame', 'Retryable', 'Status', 'Log line', 'Sentence'],
  Object.entries(failures).map(([code, { blame, retryable, status, log, sentence }]) => {
    return [`\`${code}\``, blame, retryable ? 'yes' : 'no', status, log, sentence];
  }),
)}`,
    'metrics.md': `# Metrics

Every role shows its metrics at \`/metrics\` on its probe port; a role shows only the gauges that it sets.
Gauges of the record (open, held, due, oldest) come from the leading controller alone, so that sums are true.
Node's own metrics of process, memory and event loop stand beside these, with the same prefix.

${metricsTable()}`,
  };
}

if (import.meta.main) {
  const folder = fileURLToPath(new URL('../../docs/', import.meta.url));
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(makeDocs())) writeFileSync(folder + name, text);
}
