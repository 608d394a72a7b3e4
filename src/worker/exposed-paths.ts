import { existsSync, realpathSync } from 'node:fs';
import { type ProgramPaths, readableFolders } from './find-programs.ts';
import { systemPaths } from './sandbox-command.ts';

/** Returns those of some paths that lie in a folder of the system, of a program or of a plugin: children of trawl's own user read them there. */
export function findExposed(paths: readonly string[], programs: ProgramPaths, plugins: readonly string[]): string[] {
  const readable = [...systemPaths(), ...readableFolders(programs, plugins)].filter(existsSync);
  const folders = readable.map((path) => `${realpathSync(path)}/`);
  return paths.filter((path) => existsSync(path) && folders.some((each) => `${realpathSync(path)}/`.startsWith(each)));
}
