import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '..', '..');

// A checkout may belong to another user than the one who runs the tests; git refuses that unless told.
const list = ['-c', 'safe.directory=*', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'];

/** Every file of the project, committed or about to be, as paths from its root. */
export const files: readonly string[] = execFileSync('git', list, { cwd: root, encoding: 'utf8' })
  .split('\0')
  .filter((path) => path !== '' && statSync(join(root, path), { throwIfNoEntry: false })?.isFile());

export function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** The files whose content is text, with it. */
export const texts: ReadonlyMap<string, string> = new Map(
  files.map((path) => [path, read(path)] as const).filter(([, text]) => !text.includes('\0')),
);

/** Every place where a pattern stands, as `path:line: what was found`. */
export function findPlaces(pattern: RegExp, inTexts: Iterable<readonly [string, string]>): string[] {
  return [...inTexts].flatMap(([path, text]) =>
    [...text.matchAll(pattern)].map((match) => `${path}:${lineOf(text, match.index)}: ${match[0].trim()}`),
  );
}

/** The number of the line that holds a position. */
export function lineOf(text: string, position: number): number {
  return text.slice(0, position).split('\n').length;
}
