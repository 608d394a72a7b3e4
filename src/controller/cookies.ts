import { hash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { maxCookieBytes, maxNamedLines, readCookieFile } from '../model/cookie-file.ts';

/**
 * Returns a function that reads the cookies of a URL's site, `null` for none. `example.com.txt` is for example.com and every name below it;
 * the longest name wins. A fault of a file is logged once, not for each job, until the file changes.
 */
export function openCookies(folder: string | null, log: Log): (url: unknown) => Promise<string | null> {
  /** The fault of each file that was logged last. */
  const logged = new Map<string, string>();
  const logOnce = (file: string, fault: string, sentence: string, fields: object) => {
    if (logged.get(file) !== fault) log.error(sentence, { file, ...fields });
    logged.set(file, fault);
  };

  const readOne = async (file: string): Promise<string> => {
    // `stat`, because a mounted Secret consists of links.
    const { size } = await stat(file);
    if (size > maxCookieBytes) throw new Error(`It has ${size} bytes, and ${maxCookieBytes} are allowed`);
    const text = await readFile(file, 'utf8');
    const { kept, wrongLines } = readCookieFile(text);
    if (wrongLines.length === 0) logged.delete(file);
    else {
      const sentence = 'a cookie file has lines that are no cookies in the Netscape format: they are left out';
      logOnce(file, hash('sha256', text), sentence, { lines: wrongLines.slice(0, maxNamedLines) });
    }
    return kept;
  };

  return async (url) => {
    const host = URL.parse(String(url))?.hostname;
    if (folder === null || !host) return null;
    const labels = host.split('.');
    for (let first = 0; first < labels.length; first++) {
      const file = join(folder, `${labels.slice(first).join('.')}.txt`);
      try {
        return await readOne(file);
      } catch (error) {
        if (/^(ENOENT|ENAMETOOLONG)$/.test(codeOf(error))) continue;
        const sentence = 'a cookie file cannot be read: its site is fetched without cookies';
        logOnce(file, messageOf(error), sentence, { error });
        return null;
      }
    }
    return null;
  };
}
