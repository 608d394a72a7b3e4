import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../base/log.ts';

const maxCookieBytes = 256 * 1024;

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
      return await readFile(file, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue;
      log.error('a cookie file cannot be read: its site is fetched without cookies', { file, error });
      return null;
    }
  }
  return null;
}
