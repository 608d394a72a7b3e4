import { unlink } from 'node:fs/promises';
import { openRegular } from './child-folder.ts';
import { ffmpegArguments, ffprobeArguments } from './ffmpeg-arguments.ts';
import { askFfprobe, type FileProbe } from './probe-file.ts';
import { runFfmpeg } from './run-ffmpeg.ts';
import { asList, asRecord } from './source-page.ts';
import { Failed, type MediaTools } from './tools.ts';

/** Filters of ffmpeg that leave nothing of a picture but the header that tells its size, by codec. */
const headersOf: Readonly<Record<string, string>> = {
  h264: 'h264_mp4toannexb,filter_units=pass_types=7',
  hevc: 'hevc_mp4toannexb,filter_units=pass_types=33',
  mpeg2video: 'filter_units=pass_types=179',
};
/** Formats that are joined of parts and broadcast: an MP4 and a Matroska tell the size once. */
const joinedFormats = /^(mpegts|mpeg|flv)$/;

/** Throws a `Failed` for a file whose pictures change their size: ffmpeg would copy them, and players take all of them for as large as the first one. */
export async function refuseOtherSizes(
  file: string,
  { format, video }: FileProbe,
  tools: MediaTools,
  signal: AbortSignal,
): Promise<void> {
  const filters = headersOf[video?.codec ?? ''];
  if (video === null || filters === undefined || !joinedFormats.test(format)) return;
  const headers = `${file}.headers`;
  const output = ['-map', `0:${video.index}`, '-c', 'copy', '-bsf', filters, '-f', 'framemd5'];
  await runFfmpeg(ffmpegArguments([{ file }], output, headers), tools, signal);
  const lines = (await readText(headers)).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  await unlink(headers);
  // Of a frame: stream, times, length, bytes, checksum.
  if (new Set(lines.map((line) => line.split(',')[5])).size < 2) return;
  // Headers tell more than a size: decoded key frames do not.
  const keys = ['-select_streams', String(video.index), '-skip_frame', 'nokey'];
  const { json } = await askFfprobe(
    [...keys, ...ffprobeArguments(file, 'none', ['frame=width,height'])],
    tools,
    signal,
  );
  const sizes = new Set(
    asList(json.frames)
      .map(asRecord)
      .map(({ width, height }) => `${width}x${height}`),
  );
  if (sizes.size > 1) throw new Failed('unsupported_url', `the size of its picture changes: ${[...sizes].join(', ')}`);
}

async function readText(file: string): Promise<string> {
  const handle = await openRegular(file);
  try {
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}
