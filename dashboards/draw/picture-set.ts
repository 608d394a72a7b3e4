import { cpSync, globSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface Target {
  readonly folder: string;
  /** Pattern of the files that the set replaces. */
  readonly old?: string | null;
}

/**
 * Puts pictures into a folder once all of them are drawn and nothing is wrong with them; `draw` returns what is wrong. A set that lacks
 * some would look whole to its reader, so the folder stays as it was when `draw` fails.
 */
export async function writePictureSet(
  { folder, old = null }: Target,
  draw: (folder: string) => Promise<readonly string[]>,
): Promise<void> {
  const drawn = mkdtempSync(join(tmpdir(), 'trawl-pictures-'));
  try {
    const problems = await draw(drawn);
    if (problems.length > 0) throw new Error(problems.join('\n'));
    mkdirSync(folder, { recursive: true });
    for (const path of old === null ? [] : globSync(join(folder, old))) rmSync(path);
    cpSync(drawn, folder, { recursive: true });
  } catch (error) {
    const { message } = error as Error;
    throw new Error(`No picture was written to ${folder}.\n${message}`, { cause: error });
  } finally {
    rmSync(drawn, { recursive: true });
  }
}
