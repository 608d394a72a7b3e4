import type { Metadata } from '../model/metadata.ts';
import { describePage } from './describe-media.ts';
import { endable, withDeadline } from './page-deadline.ts';
import type { MediaOrder, MediaTools } from './tools.ts';
import { startYtDlp } from './yt-dlp.ts';

/** Returns the metadata of a URL and fetches no more than that needs; throws a `Failed`. */
export async function inspectUrl(order: MediaOrder, tools: MediaTools, signal: AbortSignal): Promise<Metadata> {
  const ends = endable(signal);
  await using driver = startYtDlp('inspect', order, tools, ends.signal);
  return describePage(await withDeadline(driver.page, tools.limits.inspectSeconds, ends.end), order);
}

/** Returns the URLs of a playlist's first entries, or the URL itself when it names one medium; throws a `Failed`. */
export async function listEntries(
  url: string,
  maxEntries: number,
  tools: MediaTools,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const ends = endable(signal);
  const order = { endpoint: 'metadata', args: { query: url }, maxEntries } as const;
  await using driver = startYtDlp('list', order, tools, ends.signal);
  return await withDeadline(driver.entries, tools.limits.inspectSeconds, ends.end);
}
