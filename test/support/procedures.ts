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

/**
 * Runs a procedure word for word, as an operator does whose shell has these names and the program of this tree as `trawl`. A
 * command that fails ends it, with its exit code. Without --norc bash would read a profile, because its input is a socket.
 */
export function runProcedure(title: string, names: Readonly<Record<string, string>>): Promise<CommandResult> {
  const script = listProcedures().get(title);
  if (script === undefined) throw new Error(`docs/operate.md has no procedure "${title}"`);
  const env = { HOME: process.env.HOME ?? '/', ...names, PATH: `${root}:${process.env.PATH}` };
  return runProgram('bash', ['--norc', '-euo', 'pipefail', '-c', script], env);
}
