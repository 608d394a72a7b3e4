import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';

const maxCookieBytes = 256 * 1024;
const maxNamedLines = 10;
/** Cookie as yt-dlp reads it, with seven fields: the second is TRUE for a domain that begins with a dot, and for no other. */
const cookieLine =
  /^(?:#HttpOnly_)?(?:\.[^\t]*\tTRUE|[^\t.#$][^\t]*\t(?!TRUE\t)[^\t]*)\t[^\t]*\t[^\t]*\t(?:\d{1,20}(?:\.\d{1,20})?)?\t[^\t]*\t[^\t]*$/;
/** yt-dlp refuses a file that does not begin so. */
const firstLine = '# Netscape HTTP Cookie File';
const commentLine = /^\s*(?:#(?!HttpOnly_)|$)/;

/** Returns `null` for none. `example.com.txt` is for example.com and every name below it; the longest name wins. */
export async function readCookies(folder: string | null, url: unknown, log: Log): Promise<string | null> {
  const host = URL.parse(String(url))?.hostname;
  if (folder === null || !host) return null;
  const labels = host.split('.');
  for (let first = 0; first < labels.length; first++) {
    const file = join(folder, `${labels.slice(first).join('.')}.txt`);
    try {
      // `stat`, because a mounted Secret consists of links.
      const { size } = await stat(file);
      if (size > maxCookieBytes) throw new Error(`It has ${size} bytes, and ${maxCookieBytes} are allowed`);
      return keepCookies(await readFile(file, 'utf8'), file, log);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') continue;
      log.error('a cookie file cannot be read: its site is fetched without cookies', { file, error });
      return null;
    }
  }
  return null;
}

/** Returns the lines that are cookies, below the first one. yt-dlp would quote others in its messages, and refuse all URLs of a site for some of them. */
function keepCookies(text: string, file: string, log: Log): string {
  const lines = text.split(/\r\n?|\n/);
  const wrong = lines.flatMap((line, n) => (cookieLine.test(line) || commentLine.test(line) ? [] : n + 1));
  if (wrong.length > 0) {
    const told = { file, lines: wrong.slice(0, maxNamedLines) };
    log.error('a cookie file has lines that are no cookies in the Netscape format: they are left out', told);
  }
  return [firstLine, ...lines.filter((line) => cookieLine.test(line))].join('\n');
}
