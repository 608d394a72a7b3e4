import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { read, root } from './tree.ts';

// A checkout may belong to another user than the one who runs the tests; git refuses that unless told.
const list = ['-c', 'safe.directory=*', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'];

/** Every file of the project, committed or about to be, as paths from its root. Listing and reading all costs each process 150 ms of CPU, so they stand here alone. */
export const files: readonly string[] = execFileSync('git', list, { cwd: root, encoding: 'utf8' })
  .split('\0')
  .filter((path) => path !== '' && statSync(join(root, path), { throwIfNoEntry: false })?.isFile());

/** The files whose content is text, with it. */
export const texts: ReadonlyMap<string, string> = new Map(
  files.map((path) => [path, read(path)] as const).filter(([, text]) => !text.includes('\0')),
);
