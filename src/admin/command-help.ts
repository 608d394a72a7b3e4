import type { AdminCommand } from './command.ts';

export function usageOf(command: AdminCommand): string {
  const { operands, options } = command;
  const words = Object.entries(operands).map(([name, { optional }]) => (optional ? `[${name}]` : name));
  const required = Object.entries(options).filter(([, option]) => option.required);
  const mandatory = required.map(([name, { value }]) => written(name, value));
  const rest = Object.keys(options).length > required.length ? ['[options]'] : [];
  return ['trawl admin', command.name, ...words, ...mandatory, ...rest].join(' ');
}

export function helpOf(command: AdminCommand): string {
  const json = ['--json', `Answer with one JSON value: ${command.json}`] as const;
  const parts = listOf([...partsOf(command), json, ['--help', 'Show this text.']]);
  return `Usage: ${usageOf(command)}\n\n${command.text}\n\n${parts}`;
}

export function partsOf({ operands, options }: AdminCommand): [name: string, sentence: string][] {
  return [
    ...Object.entries(operands).map(([name, { text }]): [string, string] => [name, text]),
    ...Object.entries(options).map(([name, { value, text, required }]): [string, string] => {
      return [written(name, value), required ? `${text} Required.` : text];
    }),
  ];
}

export function overviewOf(commands: readonly AdminCommand[], group?: string): string {
  const rows = commands
    .filter((one) => group === undefined || one.group === group)
    .map((one): [string, string] => [one.name, one.text]);
  const about = group === undefined ? 'GROUP' : group;
  return [
    `Usage: trawl admin ${about} VERB …\n\n`,
    'Commands of the operator; they work beside a running system, through its record.\n\n',
    listOf(rows),
    `\n--json answers with one JSON value. trawl admin ${about} VERB --help tells what a command takes.\n`,
  ].join('');
}

function listOf(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, sentence]) => `  ${name.padEnd(width)}  ${sentence}\n`).join('');
}

function written(name: string, value: string | undefined): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`;
}
