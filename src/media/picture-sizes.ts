import { unlink } from 'node:fs/promises';
import { basename } from 'node:path';
import { openRegular } from './child-folder.ts';
import { ffmpegArguments, ffprobeArguments, type InputFile, inputOptions, mediaEnv } from './ffmpeg-arguments.ts';
import type { FileProbe } from './probe-file.ts';
import { runFfmpeg } from './run-ffmpeg.ts';
import { Failed, type MediaTools } from './tools.ts';

/** Filters of ffmpeg that leave nothing of a picture but the header that tells its size, by codec. */
const headersOf: Readonly<Record<string, string>> = {
  h264: 'h264_mp4toannexb,filter_units=pass_types=7',
  hevc: 'hevc_mp4toannexb,filter_units=pass_types=33',
  mpeg2video: 'filter_units=pass_types=179',
};
/** Formats whose files may be joined from parts of several sizes. An MP4 or a Matroska tells its size once, unless ffmpeg cut a part into it. */
const joinedFormats = /^(mpegts|mpeg|flv)$/;
/** Lines of a list of checksums have some hundred characters. */
const maxLineLength = 2 ** 16;

/** Throws a `Failed` for a file whose pictures change their size: ffmpeg would copy them, and players take all of them for as large as the first one. */
export async function refuseOtherSizes(
  input: InputFile,
  { format, video }: FileProbe,
  isCut: boolean,
  tools: MediaTools,
  signal: AbortSignal,
): Promise<void> {
  const filters = headersOf[video?.codec ?? ''];
  if (video === null || filters === undefined || !(isCut || joinedFormats.test(format))) return;
  const { file } = input;
  const headers = `${file}.headers`;
  const output = ['-map', `0:${video.index}`, '-c', 'copy', '-bsf', filters, '-f', 'framemd5'];
  await runFfmpeg(ffmpegArguments([input], output, headers), tools, signal);
  const differ = await hasOtherLines(headers);
  await unlink(headers);
  if (!differ) return;
  // Headers tell more than a size: decoded key frames do not.
  const keys = [...inputOptions(input), '-select_streams', String(video.index), '-skip_frame', 'nokey'];
  const words = [...keys, ...ffprobeArguments(file, 'none', ['frame=width,height']), '-of', 'csv=p=0'];
  const enough = new AbortController();
  let [first, other] = ['', ''];
  const onLine = (line: string) => {
    const size = /^\d+,\d+/.exec(line)?.[0] ?? first;
    first ||= size;
    if (size === first || other !== '') return;
    other = size;
    enough.abort();
  };
  const env = mediaEnv(tools.folder);
  const either = AbortSignal.any([signal, enough.signal]);
  await tools.run(tools.ffprobe, words, { folder: tools.folder, env, onLine, signal: either }).ended;
  signal.throwIfAborted();
  if (other !== '') throw new Failed('unsupported_url', `the size of its picture changes: ${first} ${other}`);
}

/** Returns true for a list of checksums of which one differs from the first one. */
async function hasOtherLines(file: string): Promise<boolean> {
  let first: string | undefined;
  for await (const line of linesOf(file)) {
    // Of a frame: stream, times, length, bytes, checksum.
    const sum = line.startsWith('#') ? undefined : line.split(',')[5];
    first ??= sum;
    if (sum !== undefined && sum !== first) return true;
  }
  return false;
}

/** Yields the lines of a file that a child wrote. Node would keep one without end in memory, and end with this process when no text can be so long. */
async function* linesOf(file: string): AsyncGenerator<string> {
  const handle = await openRegular(file);
  let rest = '';
  for await (const piece of handle.createReadStream({ highWaterMark: maxLineLength, encoding: 'latin1' })) {
    const lines = `${rest}${piece}`.split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > maxLineLength)
      throw new Failed('worker_failed', `${basename(file)} has a line of more than ${maxLineLength} characters`);
    yield* lines;
  }
  yield rest;
}
