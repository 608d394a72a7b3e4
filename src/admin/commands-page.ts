import { tableOf } from '../base/markdown-table.ts';
import type { AdminCommand } from './command.ts';
import { partsOf, usageOf } from './command-help.ts';
import { manifestsHelp } from './manifests.ts';

/** Gives docs/commands.md: every command of the operator with all that it takes. */
export function commandsPage(commands: readonly AdminCommand[]): string {
  return `# Commands

The commands of the operator work beside a running system, through its record: that of \`TRAWL_REDIS_URL\`, else that of the
\`trawl up\` that runs with the same \`TRAWL_DATA\`. Without \`--json\` they answer for people, with it one JSON value; times are ISO 8601 in UTC.
The exit code is 0 when it is done, 1 when it is refused (with \`--json\`: \`{error, code}\`) and 2 when the line is wrong.
\`set\` keeps what is not named. A value that begins with \`-\` is written \`--name=-value\`. \`--help\` works at every place.

${commands.map(section).join('\n')}
## trawl manifests

\`\`\`text
${manifestsHelp}\`\`\`
`;
}

function section(command: AdminCommand): string {
  const { group, verb, text, json } = command;
  const parts = partsOf(command).map(([name, sentence]) => [`\`${name}\``, sentence]);
  const table = parts.length > 0 ? `\n${tableOf(['Part', 'Meaning'], parts)}` : '';
  return `## ${group} ${verb}\n\n${text}\n\n- Written: \`${usageOf(command)}\`\n- Answers: \`${json}\`\n${table}`;
}
