import { lstatSync } from 'node:fs';
import { join } from 'node:path';

/** Finds the cookie file of a site: `example.com.txt` is for example.com and every name below it. The longest name wins. */
export function findCookies(folder: string | null, url: unknown): string | null {
  const host = URL.parse(String(url))?.hostname;
  if (folder === null || !host) return null;
  const labels = host.split('.');
  for (let first = 0; first < labels.length; first++) {
    const path = join(folder, `${labels.slice(first).join('.')}.txt`);
    if (lstatSync(path, { throwIfNoEntry: false })?.isFile()) return path;
  }
  return null;
}
