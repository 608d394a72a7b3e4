import type { FormatChoice } from './choose-formats.ts';
import { ffprobeArguments, inputOptions } from './ffmpeg-arguments.ts';
import { isUntimed } from './picture-filters.ts';
import { startsOf } from './plan-conversion.ts';
import { askFfprobe, type FetchedFile } from './probe-file.ts';
import type { MediaTools } from './tools.ts';

/** Seconds by which the first picture behind a start may be late unnoticed: many players show it at once, and all later ones too early. */
const unnoticedSeconds = 0.12;
/** Packets from the key frame before a start on, among which the next picture is sought: a screen recording may have one key frame in minutes. */
const maxPackets = 5_000;
/** Seconds by which a picture may begin before a start and still begin with it: ffprobe rounds to microseconds, as ffmpeg does. */
const roundingSeconds = 0.000_002;
/** Seconds by which ffmpeg begins before a picture, because it leaves out one that begins an instant earlier. */
const marginSeconds = 0.001;

/** Returns the seconds since when the picture of a start is shown when it goes on being shown behind that, as a slide does; else zero. */
export async function heldSeconds(
  fetched: readonly FetchedFile[],
  choice: FormatChoice,
  tools: MediaTools,
  signal: AbortSignal,
): Promise<number> {
  const n = choice.parts.findIndex(({ video }) => video);
  const [part, start = 0] = [fetched[n], startsOf(fetched, choice)[n]];
  const picture = part?.probe.video;
  if (part === undefined || picture == null || start <= 0 || isUntimed(part.probe)) return 0;
  // Seconds behind the begin of the file, which is not that of the part where the file was given an index.
  const near = ['-select_streams', String(picture.index), '-read_intervals', `+${start}%+#${maxPackets}`];
  const entries = ['packet=pts_time', 'format=start_time'];
  const words = [...inputOptions(part), ...near, ...ffprobeArguments(part.file, 'none', entries), '-of', 'csv'];
  const { text } = await askFfprobe(words, 2 * maxPackets, tools, signal);
  const told = (text ?? '').split('\n').map((line) => line.split(','));
  const secondsOf = (wanted: string) => told.flatMap(([kind, second]) => (kind === wanted ? Number(second) : []));
  const [begin = 0] = secondsOf('format');
  const shown = secondsOf('packet').map((second) => second - (begin || 0));
  const held = Math.max(...shown.filter((second) => second <= start));
  const next = Math.min(...shown.filter((second) => second > start));
  const isUnknown = !Number.isFinite(held) || (next === Number.POSITIVE_INFINITY && shown.length >= maxPackets);
  if (isUnknown || start - held <= roundingSeconds || next - start <= unnoticedSeconds) return 0;
  return Math.min(start, start - held + marginSeconds);
}
