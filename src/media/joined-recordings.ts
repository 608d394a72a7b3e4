import { rename, unlink } from 'node:fs/promises';
import { endsInsideTag } from './container-heads.ts';
import { ffmpegArguments, ffprobeArguments, mediaEnv } from './ffmpeg-arguments.ts';
import { lengthTolerance } from './file-lengths.ts';
import type { FileProbe } from './probe-file.ts';
import { damage } from './prove-file.ts';
import { runFfmpeg } from './run-ffmpeg.ts';
import { Failed, type MediaTools } from './tools.ts';

/** Formats that keep the times of each recording when files are joined, of which sites join FLV alone. */
const [joinedFormats, joinedBySites] = [/^(flv|matroska|mov)/, /^flv/];
/** Seconds by which the times of a stream go back at least where another recording begins. */
const minLeap = 1;
/** Seconds after which the times of an FLV begin anew that lack the bits above the lowest 24, and by which they then go back at least. */
const [wrap, minWrap] = [2 ** 24 / 1000, 16_700];
const maxRecordings = 500;

/** Packets of one stream whose times go on: number of the first, begin, begin of the latest, and end. */
interface Run {
  readonly first: number;
  readonly begin: number;
  latest: number;
  end: number;
}

interface StreamRuns {
  readonly index: number;
  readonly runs: Run[];
  count: number;
}

/**
 * Copies a file that was joined of several recordings, whose times begin anew with each, so that they go on, and an FLV that repeats its
 * headers with these at its beginning alone: ffmpeg would squeeze the later recordings into no time, and write a broken Matroska. Returns
 * `null` for any other file; `changingSound` is true of sound that no copy can hold, because its headers change; throws a `Failed` for one whose streams do not go on together, and for an MP4 in pieces.
 */
export async function joinRecordings(
  file: string,
  { format, duration, video, audio }: FileProbe,
  direct: boolean,
  tools: MediaTools,
  signal: AbortSignal,
): Promise<{ readonly changingSound: boolean } | null> {
  const wanted = [video, audio].filter((stream) => stream !== null);
  const played = wanted.map(({ index }) => index);
  // The index of an MP4 has times that only grow; one in pieces promises no packets.
  const isMov = format.startsWith('mov');
  const isIndexed = isMov && wanted.every(({ promised }) => promised !== null);
  if (isIndexed || !(direct ? joinedFormats : joinedBySites).test(format)) return null;
  const { streams, headers, last } = await readRuns(file, played, tools, signal);
  const recordings = Math.max(0, ...streams.map(({ runs }) => runs.length));
  const isFlv = joinedBySites.test(format);
  // A copy of a part may tell the length of the whole.
  if (direct && isFlv && recordings === 1 && isShort(last, duration) && (await endsInsideTag(file)))
    throw new Failed('file_damaged', `ends after ${last} s of ${duration} s`);
  if (recordings < 2 && headers.size === 0) return null;
  const isUneven = recordings > maxRecordings || streams.some(({ runs }) => runs.length !== recordings);
  if (recordings > 1 && (isMov || isUneven)) {
    throw new Failed('file_damaged', `its times begin anew: ${recordings} recordings`);
  }
  const joined = `${file}.joined`;
  await runWhole(
    [file, [...moveStreams(streams, isFlv, audio), '-f', isFlv ? 'flv' : 'matroska'], joined],
    tools,
    signal,
  );
  // An FLV still has the headers that differ from the first ones, a Matroska never had them.
  const places = played.map((_, n) => n);
  const left = isFlv && headers.size > 0 ? (await readRuns(joined, places, tools, signal)).headers : new Set<number>();
  if (video !== null && left.has(0)) {
    const copy = `${file}.copy`;
    await runWhole([joined, ['-map', '0:v', '-c', 'copy', '-f', 'mp4'], copy], tools, signal);
    await runWhole([copy, ['-xerror', '-f', 'null'], ''], tools, signal);
    await unlink(copy);
  }
  if (!isFlv) await runWhole([joined, ['-xerror', '-f', 'null'], ''], tools, signal);
  await rename(joined, file);
  return { changingSound: audio !== null && left.has(played.length - 1) };
}

function isShort(seconds: number, told: number | null): boolean {
  return told !== null && seconds < told - lengthTolerance(told);
}

/** Returns the arguments that copy the streams with the times of their later recordings moved. */
function moveStreams(streams: readonly StreamRuns[], isFlv: boolean, audio: FileProbe['audio']): string[] {
  const moves = movesOf(streams.map(({ runs }) => runs));
  const maps = streams.flatMap(({ index, runs }, n) => {
    const by = sumOf(runs.map(({ first }, k) => `${(moves[k] ?? 0).toFixed(3)}*gte(N\\,${first})`));
    // ffmpeg guesses when a picture of a Matroska is decoded, and does so wrongly behind a leap. Sound without that time aborts ffmpeg 7.
    const decoded = isFlv ? `DTS+(${by})/TB` : index === audio?.index ? `PTS+(${by})/TB` : 'NOPTS';
    return ['-map', `0:${index}`, `-bsf:${n}`, `setts=pts=PTS+(${by})/TB:dts=${decoded}`];
  });
  return [...maps, '-c', 'copy', '-copyinkf'];
}

/** Returns the sum of terms as ffmpeg reads it: fewer than a hundred outside of brackets. */
function sumOf(terms: readonly string[]): string {
  const groups = Array.from({ length: Math.ceil(terms.length / 50) }, (_, n) => terms.slice(50 * n, 50 * n + 50));
  return groups.map((group) => `(${group.join('+')})`).join('+') || '0';
}

/** Runs an ffmpeg that fails on a whole file only where its later recordings do not fit the headers of the first one. */
async function runWhole(
  [input, output, file]: readonly [string, readonly string[], string],
  tools: MediaTools,
  signal: AbortSignal,
): Promise<void> {
  try {
    await runFfmpeg(ffmpegArguments([{ file: input }], output, file), tools, signal);
  } catch (error) {
    if (!(error instanceof Failed) || error.code === 'file_too_large' || damage.test(error.detail)) throw error;
    throw new Failed('unsupported_url', `the headers of its recordings differ: ${error.detail}`);
  }
}

/** Returns the seconds by which each recording is moved farther than the one before. */
function movesOf(streams: readonly (readonly Run[])[]): number[] {
  let [end, moved] = [0, 0];
  return (streams[0] ?? []).map((_, k) => {
    const runs = streams.flatMap((each) => each[k] ?? []);
    const begin = Math.min(...runs.map((run) => run.begin));
    const isWrap = (streams[0]?.[k - 1]?.latest ?? 0) - begin > minWrap;
    const move = k === 0 ? 0 : isWrap ? wrap : end - moved - begin;
    moved += move;
    end = moved + Math.max(...runs.map((run) => run.end));
    return move;
  });
}

/** Reads the times of all packets, and which streams have headers between them. */
async function readRuns(file: string, played: readonly number[], tools: MediaTools, signal: AbortSignal) {
  const streams = played.map((index): StreamRuns => ({ index, runs: [], count: 0 }));
  const headers = new Set<number>();
  let last = 0;
  const onLine = (line: string) => {
    // Side data has lines of its own, most of them empty.
    const [index, pts, duration] = line.split(',', 3).map(Number.parseFloat);
    last = Math.max(last, (pts || 0) + (duration || 0));
    const stream = streams.find((each) => each.index === index);
    if (stream === undefined) return;
    if (line.includes('New Extradata')) headers.add(stream.index);
    const first = stream.count++;
    if (pts === undefined || Number.isNaN(pts)) return;
    const end = pts + (duration || 0);
    const run = stream.runs.at(-1);
    // Pictures that others are made of are decoded before those, but no key frame goes back.
    const isAnew = run === undefined || pts < run.latest - (line.includes(',K') ? minLeap : minWrap);
    // One run too many refuses the file: a hostile one may have millions.
    if (isAnew && stream.runs.length <= maxRecordings) stream.runs.push({ first, begin: pts, latest: pts, end });
    else if (run !== undefined) Object.assign(run, { latest: Math.max(run.latest, pts), end: Math.max(run.end, end) });
  };
  const entries = ['packet=stream_index,pts_time,duration_time,flags', 'packet_side_data=side_data_type'];
  const words = [...ffprobeArguments(file, 'none', entries), '-of', 'csv=p=0'];
  await tools.run(tools.ffprobe, words, { folder: tools.folder, env: mediaEnv(tools.folder), onLine, signal }).ended;
  signal.throwIfAborted();
  return { streams, headers, last };
}
