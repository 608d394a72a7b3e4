import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../base/config.ts';
import { messageOf } from '../base/errors.ts';
import { lastExpiry, maxCookieBytes, maxNamedLines, readCookieFile } from '../model/cookie-file.ts';
import { type Finding, judged, problem } from './doctor-finding.ts';

const about = 'cookies';

interface CookieFile {
  readonly name: string;
  readonly site: string;
  /** The sentence, without its subject; `null` for a file that is used as it is. */
  readonly fault: string | null;
  readonly expiresAt: number | null;
}

/** Reads every cookie file as the controller does for a job of its site; says no word of what is in one. */
export async function checkCookies({ cookies: folder }: Pick<Config, 'cookies'>): Promise<Finding[]> {
  if (folder === null) return [];
  try {
    const files = await readCookieFolder(folder);
    const found = files.flatMap(({ name, fault }) =>
      fault === null ? [] : problem(about, `The cookie file ${name} ${fault}.`),
    );
    if (found.length > 0) return found;
    const named = `${folder} has cookies of ${files.map(({ site }) => site).join(', ')}.`;
    const none = `${folder} has no file such as example.com.txt: every site is fetched without cookies.`;
    return [judged(about, files.length > 0, named, none, 'note')];
  } catch (error) {
    return [problem(about, `The folder of TRAWL_COOKIES cannot be read: ${messageOf(error)}.`)];
  }
}

export async function readCookieFolder(folder: string): Promise<CookieFile[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.txt')).sort();
  return Promise.all(
    names.map(async (name) => ({ name, site: name.slice(0, -4), ...(await judgeFile(join(folder, name))) })),
  );
}

async function judgeFile(file: string): Promise<Pick<CookieFile, 'fault' | 'expiresAt'>> {
  try {
    const { size } = await stat(file);
    if (size > maxCookieBytes) {
      const fault = `has ${size} bytes, and ${maxCookieBytes} are allowed: its site is fetched without cookies`;
      return { fault, expiresAt: null };
    }
    const { kept, wrongLines } = readCookieFile(await readFile(file, 'utf8'));
    return { fault: faultOf(kept, wrongLines), expiresAt: lastExpiry(kept) };
  } catch (error) {
    return { fault: `cannot be read: ${messageOf(error)}`, expiresAt: null };
  }
}

function faultOf(kept: string, wrongLines: readonly number[]): string | null {
  const again = 'export it again in the Netscape format';
  if (wrongLines.length > 0) {
    const named = wrongLines.slice(0, maxNamedLines).join(', ') + (wrongLines.length > maxNamedLines ? ', …' : '');
    return `has lines that are no cookies, which are left out: ${named}. Correct them, or ${again}`;
  }
  return kept.includes('\n') ? null : `has no cookie: ${again}`;
}
