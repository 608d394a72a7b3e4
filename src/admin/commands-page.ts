import { tableOf } from '../base/markdown-table.ts';
import type { AdminCommand } from './command.ts';
import { partsOf, usageOf } from './command-help.ts';
import { manifestsHelp } from './manifests.ts';

/** Returns docs/commands.md: every command of the operator with its operands and options. */
export function commandsPage(commands: readonly AdminCommand[]): string {
  return `# Commands

The commands of the operator work beside a running system, through its Redis: that of \`TRAWL_REDIS_URL\`, else that of the
\`trawl up\` that runs with the same \`TRAWL_DATA\`. They answer with text for people, with \`--json\` with one JSON value; times are ISO 8601 in UTC.
The exit code is 0 when a command is done, 1 when it is refused (with \`--json\`: \`{error, code}\`) and 2 when its line is wrong.
\`set\` keeps the value of every option that is not given. A value that begins with \`-\` is written \`--name=-value\`. \`--help\` works at every place.

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
