/** Cookie as yt-dlp reads it, with seven fields: the second is TRUE for a domain that begins with a dot, and for no other. */
const cookieLine =
  /^(?:#HttpOnly_)?(?:\.[^\t]*\tTRUE|[^\t.#$][^\t]*\t(?!TRUE\t)[^\t]*)\t[^\t]*\t[^\t]*\t(?:\d{1,20}(?:\.\d{1,20})?)?\t[^\t]*\t[^\t]*$/;
/** yt-dlp refuses a file that does not begin so. */
const firstLine = '# Netscape HTTP Cookie File';
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
