import { type Block, listBlocks } from './doc-page.ts';
import { type CommandResult, runProgram } from './operator.ts';
import { read, root } from './tree.ts';

const headingStart = '### Procedure: ';

/** Returns the procedures of docs/operate.md: the title of each, and its blocks for the shell as one script. */
export function listProcedures(): ReadonlyMap<string, string> {
  const [, ...sections] = read('docs/operate.md').split(/^(?=#{1,3} )/m);
  return new Map(
    sections
      .filter((section) => section.startsWith(headingStart))
      .map((section) => {
        const title = section.slice(headingStart.length, section.indexOf('\n'));
        const blocks = listBlocks(section).filter(({ language }) => language === 'sh');
        return [title, blocks.map(({ text }) => text).join('')];
      }),
  );
}

/** Returns the blocks of docs/operate.md for bash that are no procedure: they make the words with which procedures begin. */
export function listPreparations(): Block[] {
  return listBlocks(read('docs/operate.md')).filter(({ language }) => language === 'bash');
}

/** Returns such a block under a heading, the one with a word where there are several. */
export function readPreparation(heading: string, word = ''): string {
  const found = listPreparations().filter((block) => block.heading === heading && block.text.includes(word));
  if (found.length !== 1) throw new Error(`docs/operate.md has ${found.length} blocks "${heading}" with "${word}"`);
  return found[0]!.text;
}

/**
 * Runs a procedure word for word, as an operator does whose shell has these names and the program of this tree as `trawl`, unless
 * the names have a function of that name. A command that fails ends it, with its exit code. `change` puts in what the operator chooses.
 */
export function runProcedure(
  title: string,
  names: Readonly<Record<string, string>>,
  change: (script: string) => string = (script) => script,
): Promise<CommandResult> {
  const script = listProcedures().get(title);
  if (script === undefined) throw new Error(`docs/operate.md has no procedure "${title}"`);
  return runInBash(change(script), names);
}

/** Runs a script of an operator. Without --norc bash would read a profile, because its input is a socket. */
export function runInBash(script: string, names: Readonly<Record<string, string>>): Promise<CommandResult> {
  const { PATH = process.env.PATH } = names;
  const env = { HOME: process.env.HOME ?? '/', ...names, PATH: `${root}:${PATH}` };
  return runProgram('bash', ['--norc', '-euo', 'pipefail', '-c', script], env);
}
