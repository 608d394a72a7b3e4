import type { Metadata } from '../model/metadata.ts';
import { chooseFormatsFor } from './choose-formats.ts';
import { describeMedia } from './describe-media.ts';
import { endable, withDeadline } from './page-deadline.ts';
import type { SourcePage } from './source-page.ts';
import { Failed, type MediaOrder, type MediaTools } from './tools.ts';
import { startYtDlp } from './yt-dlp.ts';

/** Returns the metadata of a URL and fetches no more than that needs; throws a `Failed`. */
export async function inspectUrl(order: MediaOrder, tools: MediaTools, signal: AbortSignal): Promise<Metadata> {
  const ends = endable(signal);
  const driver = startYtDlp('inspect', order, tools, ends.signal);
  try {
    return describePage(await withDeadline(driver.page, tools.limits.inspectSeconds, ends.end), order);
  } finally {
    await driver.end();
  }
}

/** Returns the URLs of a playlist's first entries, or the URL itself when it names one medium; throws a `Failed`. */
export async function listEntries(
  url: string,
  maxEntries: number,
  tools: MediaTools,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const ends = endable(signal);
  const driver = startYtDlp('list', { endpoint: 'metadata', args: { query: url }, maxEntries }, tools, ends.signal);
  try {
    return await withDeadline(driver.entries, tools.limits.inspectSeconds, ends.end);
  } finally {
    await driver.end();
  }
}

/** Returns the metadata of an inspected page; size and kind of file are those that a download would choose. */
export function describePage(page: SourcePage, order: MediaOrder): Metadata {
  return describeMedia(page, { query: String(order.args.query) }, bestFormat(page));
}

function bestFormat(page: SourcePage) {
  try {
    const { parts } = chooseFormatsFor({ ...page, live: false }, { endpoint: 'video', args: {} });
    return page.formats.find((format) => format.id === parts[0]?.id) ?? null;
  } catch (error) {
    if (error instanceof Failed) return page.formats.at(-1) ?? null;
    throw error;
  }
}
