import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const script = join(import.meta.dirname, '..', '..', '.ci', 'tools', 'install');

let found: readonly string[] | undefined;

/**
 * The folders with the programs that `make tools` has built from the modules as they are when a process first asks: each answer
 * costs 86 ms of CPU, as much as a run of helm.
 */
export function toolFolders(): readonly string[] {
  found ??= spawnSync(script, ['--where'], { encoding: 'utf8' }).stdout?.split('\n').filter(Boolean) ?? [];
  return found;
}

/** The path of a program that `make tools` builds. */
export function tool(name: string): string {
  const path = toolFolders()
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file));
  if (path === undefined) throw new Error(`There is no ${name}: run 'make tools'`);
  return path;
}
