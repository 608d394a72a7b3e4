import { configTable } from '../base/config.ts';
import { failures, refusals } from '../base/errors.ts';
import { tableOf } from '../base/markdown-table.ts';
import { metricsTable } from '../base/metrics.ts';
import { getHelp } from '../client/get-options.ts';
import { loginHelp } from '../client/login.ts';
import { mcpHelp } from '../client/mcp.ts';
import { bootstrapHelp } from './bootstrap.ts';
import type { AdminCommand } from './command.ts';
import { partsOf, usageOf } from './command-help.ts';
import { commands } from './commands.ts';
import { manifestsHelp } from './manifests.ts';
import { uninstallHelp } from './uninstall.ts';

const aboutGet =
  'A command of callers, as `trawl login` is: it knows a service through its public API alone, and works from any machine.';

/** Returns every generated page of docs by the name of its file. */
export function makeDocs(): Record<string, string> {
  return {
    'commands.md': commandsPage(),
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
Gauges of the record (open, held, due, oldest) come from the leading controller alone, so that sums are true; one that loses the lead shows them no more.
Node's own metrics of process, memory and event loop stand beside these, with the same prefix.

${metricsTable()}`,
  };
}

function commandsPage(): string {
  return `# Commands

The commands of the operator work beside a running system, through its Redis: that of \`TRAWL_REDIS_URL\`, else that of the
\`trawl up\` that runs with the same \`TRAWL_DATA\`. Links that they show lead to where this \`trawl up\` answers, unless their
environment names a URL, host or port. They answer with text for people, with \`--json\` with one JSON value; times are ISO 8601 in UTC.
The exit code is 0 when a command is done, 1 when it is refused (with \`--json\`: \`{error, code}\`) and 2 when its line is wrong.
\`set\` keeps the value of every option that is not given. A value that begins with \`-\` is written \`--name=-value\`. \`--help\` works at every place, and \`trawl --version\` says which release it is.

${commands.map(section).join('\n')}
${programSection('manifests', manifestsHelp)}
${programSection('uninstall', uninstallHelp)}
${programSection('bootstrap', bootstrapHelp)}
${programSection('get', getHelp, `${aboutGet}\n\n`)}
${programSection('login', loginHelp)}
${programSection('mcp', mcpHelp)}`;
}

function programSection(name: string, help: string, about = ''): string {
  return `## trawl ${name}\n\n${about}\`\`\`text\n${help}\`\`\`\n`;
}

function section(command: AdminCommand): string {
  const { text, json } = command;
  const parts = partsOf(command).map(([name, sentence]) => [`\`${name}\``, sentence]);
  const table = parts.length > 0 ? `\n${tableOf(['Part', 'Meaning'], parts)}` : '';
  return `## ${command.name}\n\n${text}\n\n- Written: \`${usageOf(command)}\`\n- Answers: \`${json}\`\n${table}`;
}
