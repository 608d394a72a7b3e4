import { accessSync, constants, existsSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import type { MediaTools } from '../media/tools.ts';
import { projectPython } from '../media/yt-dlp.ts';
import { programFolders, systemPaths } from './sandbox-command.ts';

export type ProgramPaths = Pick<MediaTools, 'python' | 'driver' | 'ffmpeg' | 'ffprobe' | 'node'>;

const root = join(import.meta.dirname, '..', '..');

/** Returns every program's path; throws a sentence that names the missing one. */
export function findPrograms(path: string): ProgramPaths {
  return {
    python: firstOf('Python with yt-dlp', [projectPython]),
    driver: join(root, 'src', 'media', 'driver.py'),
    ffmpeg: inPath('ffmpeg', path),
    ffprobe: inPath('ffprobe', path),
    node: process.execPath,
  };
}

/** Returns the folders that children must read to run the programs and the plugins of yt-dlp. */
export function readableFolders(programs: ProgramPaths, plugins: readonly string[]): string[] {
  const { python, driver, ffmpeg, ffprobe, node } = programs;
  return [...programFolders([python, ffmpeg, ffprobe, node]), dirname(driver), ...plugins];
}

/** Returns those of some paths that lie in a folder of the system, of a program or of a plugin: children of trawl's own user read them there. */
export function findExposed(paths: readonly string[], programs: ProgramPaths, plugins: readonly string[]): string[] {
  const readable = [...systemPaths(), ...readableFolders(programs, plugins)].filter(existsSync);
  const folders = readable.map((path) => `${realpathSync(path)}/`);
  return paths.filter((path) => existsSync(path) && folders.some((each) => `${realpathSync(path)}/`.startsWith(each)));
}

function inPath(name: string, path: string): string {
  return firstOf(
    name,
    path.split(delimiter).map((folder) => join(folder, name)),
  );
}

function firstOf(name: string, paths: readonly string[]): string {
  const found = paths.find(isProgram);
  if (found === undefined) throw new Error(`${name} was not found: run make setup.`);
  return found;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    // Missing or not executable.
    return false;
  }
}
