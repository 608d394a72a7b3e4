import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../base/config.ts';
import { messageOf } from '../base/errors.ts';
import { maxCookieBytes, maxNamedLines, readCookieFile } from '../model/cookie-file.ts';
import { type Finding, judged, problem } from './doctor-finding.ts';

const about = 'cookies';

/** Reads every cookie file as the controller does for a job of its site; says no word of what is in one. */
export async function checkCookies({ cookies: folder }: Pick<Config, 'cookies'>): Promise<Finding[]> {
  if (folder === null) return [];
  try {
    const files = (await readdir(folder)).filter((name) => name.endsWith('.txt'));
    const faults = await Promise.all(files.map((name) => findFault(join(folder, name))));
    const found = faults.flatMap((fault, n) =>
      fault === null ? [] : problem(about, `The cookie file ${files[n]} ${fault}.`),
    );
    if (found.length > 0) return found;
    const named = `${folder} has cookies of ${files.map((name) => name.slice(0, -4)).join(', ')}.`;
    const none = `${folder} has no file such as example.com.txt: every site is fetched without cookies.`;
    return [judged(about, files.length > 0, named, none, 'note')];
  } catch (error) {
    return [problem(about, `The folder of TRAWL_COOKIES cannot be read: ${messageOf(error)}.`)];
  }
}

async function findFault(file: string): Promise<string | null> {
  try {
    const { size } = await stat(file);
    if (size > maxCookieBytes)
      return `has ${size} bytes, and ${maxCookieBytes} are allowed: its site is fetched without cookies`;
    const { kept, wrongLines } = readCookieFile(await readFile(file, 'utf8'));
    const again = 'export it again in the Netscape format';
    if (wrongLines.length > 0) {
      const named = wrongLines.slice(0, maxNamedLines).join(', ') + (wrongLines.length > maxNamedLines ? ', …' : '');
      return `has lines that are no cookies, which are left out: ${named}. Correct them, or ${again}`;
    }
    return kept.includes('\n') ? null : `has no cookie: ${again}`;
  } catch (error) {
    return `cannot be read: ${messageOf(error)}`;
  }
}
