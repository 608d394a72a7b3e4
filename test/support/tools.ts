import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const script = join(import.meta.dirname, '..', '..', '.ci', 'tools', 'install');

/** The folders with the programs that `make tools` has built from the modules as they are now. */
export function toolFolders(): string[] {
  return spawnSync(script, ['--where'], { encoding: 'utf8' }).stdout?.split('\n').filter(Boolean) ?? [];
}

/** The path of a program that `make tools` builds. */
export function tool(name: string): string {
  const path = toolFolders()
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file));
  if (path === undefined) throw new Error(`There is no ${name}: run 'make tools'`);
  return path;
}
