/** Cookie as yt-dlp reads it, with seven fields: the second is TRUE for a domain that begins with a dot, and for no other. */
const cookieLine =
  /^(?:#HttpOnly_)?(?:\.[^\t]*\tTRUE|[^\t.#$][^\t]*\t(?!TRUE\t)[^\t]*)\t[^\t]*\t[^\t]*\t(?:\d{1,20}(?:\.\d{1,20})?)?\t[^\t]*\t[^\t]*$/;
/** yt-dlp refuses a file that does not begin so. */
const firstLine = '# Netscape HTTP Cookie File';
/** The latest time that a Date can hold. */
const maxTimeMs = 8.64e15;
const commentLine = /^\s*(?:#(?!HttpOnly_)|$)/;

export const maxCookieBytes = 256 * 1024;
/** Wrong lines that a message names. */
export const maxNamedLines = 10;

/**
 * Returns the lines that are cookies, below the first one, and the numbers of lines that are none. yt-dlp would quote these in its messages,
 * and refuse all URLs of a site for some of them.
 */
export function readCookieFile(text: string): { readonly kept: string; readonly wrongLines: readonly number[] } {
  const lines = text.split(/\r\n?|\n/);
  return {
    kept: [firstLine, ...lines.filter((line) => cookieLine.test(line))].join('\n'),
    wrongLines: lines.flatMap((line, n) => (cookieLine.test(line) || commentLine.test(line) ? [] : n + 1)),
  };
}

/** Returns when the last cookie of these lines expires; `null` when none tells a time, as a cookie of a session does not. */
export function lastExpiry(kept: string): number | null {
  const times = kept.split('\n').map((line) => Number(line.split('\t')[4] ?? 0) * 1000);
  const last = Math.max(...times);
  return last > 0 ? Math.min(last, maxTimeMs) : null;
}
