import { parseArgs } from 'node:util';
import { UsageError } from '../base/command-line.ts';
import type { AdminCommand } from './command.ts';
import { helpOf, overviewOf, usageOf } from './command-help.ts';
import { allowed, withUsage } from './command-io.ts';

export type CommandLine =
  | { readonly help: string }
  | { readonly help?: undefined; readonly command: AdminCommand; readonly given: Readonly<Record<string, unknown>> };

interface Words {
  readonly operands: readonly string[];
  readonly options: readonly Written[];
}

interface Written {
  readonly name: string;
  readonly rawName: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

const common = ['json', 'help'];

export function parseCommandLine(args: readonly string[], commands: readonly AdminCommand[]): CommandLine {
  const named = commands.find((one) => isNamed(one, readWords(args, [one])));
  const { operands: words, options } = readWords(args, named ? [named] : commands);
  const [group, ...behind] = words;
  const inGroup = commands.filter((one) => one.group === group);
  const isOne = inGroup[0]?.verb === '';
  const [verb, ...operands] = isOne ? ['', ...behind] : behind;
  const found = inGroup.find((one) => one.verb === verb);
  if (group !== undefined && inGroup.length === 0) {
    throw new UsageError(`There is no group ${group}: there are ${listGroups(commands)}`, 'trawl admin GROUP VERB …');
  }
  const usage = `trawl admin ${group ?? 'GROUP'} ${group === undefined ? 'VERB' : inGroup.map((one) => one.verb).join('|')} …`;
  if (verb !== undefined && !found) throw new UsageError(`There is no command ${group} ${verb}`, usage);
  if (options.some(({ name }) => name === 'help')) return { help: found ? helpOf(found) : overviewOf(commands, group) };
  if (group === undefined) throw new UsageError(`A group is missing: ${listGroups(commands)}`, usage);
  if (!found) throw new UsageError(`A verb is missing behind ${group}`, usage);
  try {
    return { command: found, given: parseValues(found, { operands, options }) };
  } catch (error) {
    throw withUsage(error, usageOf(found));
  }
}

/** Returns true when a line has --json, even if the line is wrong otherwise. */
export function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return (end < 0 ? args : args.slice(0, end)).includes('--json');
}

/**
 * Returns true when a line that is split by the options of the command names the command. An option may stand before the words of the
 * command, and may have a value in one command and none in another, such as `--operator` of `user create` and of `user remove`.
 */
function isNamed({ group, verb }: AdminCommand, { operands }: Words): boolean {
  return operands[0] === group && (verb === '' || operands[1] === verb);
}

/** Splits a line by the options of these commands without refusing anything, so that the sentences of errors can be our own. */
function readWords(args: readonly string[], commands: readonly AdminCommand[]): Words {
  const options = commands.flatMap((one) => Object.entries(one.options));
  const { tokens } = parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(
        options.map(([name, { value }]) => [name, { type: value === undefined ? 'boolean' : 'string' } as const]),
      ),
      json: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
    strict: false,
    tokens: true,
  });
  return {
    operands: tokens.filter((token) => token.kind === 'positional').map(({ value }) => value),
    options: tokens.filter((token) => token.kind === 'option'),
  };
}

function parseValues(command: AdminCommand, { operands, options }: Words): Record<string, unknown> {
  const given: Record<string, unknown> = {};
  for (const option of options) readOption(command, option, given);
  const names = Object.keys(command.operands);
  const [extra] = operands.slice(names.length);
  if (extra !== undefined) throw new UsageError(`There is one word too many: ${extra}`);
  for (const [n, name] of names.entries()) {
    const { read, optional } = command.operands[name]!;
    const text = operands[n];
    if (text !== undefined) given[name] = allowed(read(text, name));
    else if (!optional) throw new UsageError(`${name} is missing`);
  }
  for (const [name, { required }] of Object.entries(command.options)) {
    if (required && !(name in given)) throw new UsageError(`--${name} is missing`);
  }
  return given;
}

function readOption(
  command: AdminCommand,
  { name, rawName, value, inlineValue }: Written,
  given: Record<string, unknown>,
): void {
  const isCommon = common.includes(name);
  const option = Object.hasOwn(command.options, name) ? command.options[name] : undefined;
  if (!option && !isCommon) throw new UsageError(`There is no option ${rawName} here`);
  if (option && name in given) throw new UsageError(`${rawName} is there twice`);
  if (!option || option.value === undefined) {
    if (value !== undefined) throw new UsageError(`${rawName} takes no value`);
    if (option) given[name] = allowed(option.read('', rawName));
    return;
  }
  if (value === undefined) throw new UsageError(`${rawName} needs a value`);
  // Mostly a value that was forgotten, so that the next option stands in its place.
  if (!inlineValue && value.startsWith('-')) {
    throw new UsageError(`${rawName} needs a value; one that begins with - is written ${rawName}=${value}`);
  }
  given[name] = allowed(option.read(value, rawName));
}

function listGroups(commands: readonly AdminCommand[]): string {
  return [...new Set(commands.map((one) => one.group))].join(', ');
}
