import { listBlocks } from './doc-page.ts';
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

/** Returns the lines with which an operator of a cluster makes `trawl` and the other words of the procedures. */
export function readClusterWords(): string {
  const blocks = listBlocks(read('docs/operate.md'));
  return blocks.find(({ heading, language }) => heading === 'In a cluster' && language === 'bash')!.text;
}

/**
 * Runs a procedure word for word, as an operator does whose shell has these names and the program of this tree as `trawl`, unless
 * the names have a function of that name. A command that fails ends it, with its exit code.
 */
export function runProcedure(title: string, names: Readonly<Record<string, string>>): Promise<CommandResult> {
  const script = listProcedures().get(title);
  if (script === undefined) throw new Error(`docs/operate.md has no procedure "${title}"`);
  return runInBash(script, names);
}

/** Runs a script of an operator. Without --norc bash would read a profile, because its input is a socket. */
export function runInBash(script: string, names: Readonly<Record<string, string>>): Promise<CommandResult> {
  const { PATH = process.env.PATH } = names;
  const env = { HOME: process.env.HOME ?? '/', ...names, PATH: `${root}:${PATH}` };
  return runProgram('bash', ['--norc', '-euo', 'pipefail', '-c', script], env);
}
