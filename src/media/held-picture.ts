import type { FormatChoice } from './choose-formats.ts';
import { ffprobeArguments, inputOptions } from './ffmpeg-arguments.ts';
import { longestOf } from './file-lengths.ts';
import { type HeldPictures, isUntimed } from './picture-filters.ts';
import { startsOf } from './plan-conversion.ts';
import { askFfprobe, type FetchedFile, type FileProbe } from './probe-file.ts';
import type { MediaTools } from './tools.ts';

/** Seconds by which the first picture behind a start may be late unnoticed: many players show it at once, and all later ones too early. */
const unnoticedSeconds = 0.12;
/** Packets from the key frame before a start on, among which the next picture is sought: a screen recording may have one key frame in minutes. */
const maxPackets = 5_000;
/** Seconds by which a picture may begin before a start and still begin with it: ffprobe rounds to microseconds, as ffmpeg does. */
const roundingSeconds = 0.000_002;

/** Seconds for which a picture of a transport stream is held at most: ffmpeg takes a longer gap for another clock. */
const maxGapSeconds = 11;

interface Shown {
  readonly second: number;
  readonly lasts: number;
  readonly position: number;
  /** Second at which the next one is shown, without end behind the last one. */
  readonly next: number;
  /** Pictures that are shown after it, in the order in which they are decoded. */
  readonly later: readonly Pick<Shown, 'second' | 'position'>[];
}

/** Returns the pictures that are held at the start of a part and at its end, `null` where another one follows at once. */
export async function findHeldPictures(
  fetched: readonly FetchedFile[],
  choice: FormatChoice,
  tools: MediaTools,
  signal: AbortSignal,
): Promise<HeldPictures> {
  const n = choice.parts.findIndex(({ video }) => video);
  const [part, start = 0] = [fetched[n], startsOf(fetched, choice)[n]];
  if (part?.probe.video == null || isUntimed(part.probe) || isEven(part.probe)) return { atStart: null, atEnd: null };
  const end = choice.seconds === null ? Number.POSITIVE_INFINITY : start + choice.seconds - choice.start;
  // ffmpeg finds a second of a transport stream in the order of decoding, behind pictures that are shown before it.
  const isIndexed = start > 0 || part.probe.format !== 'mpegts';
  const held = async (at: number) => {
    const isInside = at > 0 && at <= longestOf(fetched) + unnoticedSeconds;
    const found = isInside
      ? await findShown(part, { at, from: isIndexed ? at : at - maxGapSeconds }, tools, signal)
      : null;
    if (found === null || at - found.second <= roundingSeconds || found.next - at <= unnoticedSeconds) return null;
    const { second, lasts, position, later } = found;
    // A cut leaves out the next picture, which tells how long the last one is shown.
    const last = choice.section ? longestOf(fetched) : second + lasts;
    const shown = Math.min(end, found.next, last) - Math.max(second, start);
    return {
      ...{ position, seconds: Math.max(0, start - second), lasts, share: shown > 0 && lasts > 0 ? shown / lasts : 1 },
      early: later.map((each) => ({ position: each.position, share: (end - start) / (each.second - start) })),
    };
  };
  const [atStart, atEnd] = [await held(start), await held(end)];
  return {
    atStart,
    atEnd:
      atEnd !== null && (atEnd.early.length > 0 || Math.abs(1 - atEnd.share) * atEnd.lasts > unnoticedSeconds)
        ? atEnd
        : null,
  };
}

/** Returns true for a film whose index promises so many pictures that none has time to be held: most films need no look at their packets. */
function isEven({ format, duration, video }: FileProbe): boolean {
  const { promised = null, fastestRate = null } = video ?? {};
  if (!format.startsWith('mov') || promised === null || fastestRate === null || duration === null) return false;
  // The picture that lasts longest has what the others leave; the duration of the stream may lack it.
  return Math.abs(duration - (promised - 1) / fastestRate) <= unnoticedSeconds;
}

/** Returns the picture of a file that is shown at a second, `null` when nothing tells its place, or too many follow before the next one that is shown. */
async function findShown(
  part: FetchedFile,
  { at, from }: { readonly at: number; readonly from: number },
  tools: MediaTools,
  signal: AbortSignal,
): Promise<Shown | null> {
  // Seconds behind the begin of the file, which is not that of the part where the file was given an index.
  const interval = `+${Math.max(0, from)}%+#${maxPackets}`;
  const near = ['-select_streams', String(part.probe.video?.index), '-read_intervals', interval];
  const entries = ['packet=pts_time,duration_time,pos', 'format=start_time'];
  const words = [...inputOptions(part), ...near, ...ffprobeArguments(part.file, 'none', entries), '-of', 'csv'];
  const { text } = await askFfprobe(words, 2 * maxPackets, tools, signal);
  const told = (text ?? '').split('\n').map((line) => line.split(','));
  const begin = Number(told.find(([kind]) => kind === 'format')?.[1]) || 0;
  const all = told.flatMap(([kind, second, lasts, position]) =>
    kind === 'packet' ? { second: Number(second) - begin, lasts: Number(lasts) || 0, position: Number(position) } : [],
  );
  const [shown] = all.filter(({ second }) => second <= at).sort((one, other) => other.second - one.second);
  const next = Math.min(...all.flatMap(({ second }) => (second > at ? second : [])));
  const isUnknown = next === Number.POSITIVE_INFINITY && all.length >= maxPackets;
  if (shown === undefined || isUnknown || Number.isNaN(shown.position)) return null;
  const later = all.filter(({ second, position }) => second > at && !Number.isNaN(position));
  return { ...shown, next, later: later.slice(0, part.probe.video?.reordered ?? 0) };
}
