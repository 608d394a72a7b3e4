import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { messageOf } from './errors.ts';

/** A command line that is wrong: exit code 2. */
export class UsageError extends Error {
  /** Usage line of the command, where it is known. */
  readonly usage: string | undefined;

  constructor(sentence: string, usage?: string) {
    super(sentence);
    this.usage = usage;
  }
}

/** Parses the options and the words of a command. An error never quotes a word without a name: it may be a key. */
export function parseWords<const T extends ParseArgsOptionsConfig>(args: readonly string[], options: T) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    // Without the advice about words that begin with -, which no command takes.
    throw new UsageError(messageOf(error).replace(/\. To specify a positional argument .*$/s, ''));
  }
}

/** Parses the options of a command that takes no words. */
export function parseOptions<const T extends ParseArgsOptionsConfig>(args: readonly string[], options: T) {
  const { values, positionals } = parseWords(args, options);
  if (positionals.length > 0) throw new UsageError('There is a word too many');
  return values;
}
