import { unlink } from 'node:fs/promises';
import type { FormatChoice } from './choose-formats.ts';
import { canHold, containers } from './container.ts';
import { ffmpegArguments } from './ffmpeg-arguments.ts';
import { isUntimed } from './picture-filters.ts';
import { startsOf } from './plan-conversion.ts';
import { changingSound, type FetchedFile, type FileProbe, probeFile, type Stream } from './probe-file.ts';
import { runFfmpeg } from './run-ffmpeg.ts';
import type { MediaTools } from './tools.ts';

/**
 * Gives an index to the files that are cut: a cut of one without begins at a key frame behind the wanted second, or beside it. Sound whose
 * sample rate changes gets its time anew: of a file of sound alone ffmpeg tells it by the first rate.
 */
export async function indexParts(
  fetched: readonly FetchedFile[],
  choice: FormatChoice,
  tools: MediaTools,
  signal: AbortSignal,
): Promise<FetchedFile[]> {
  const parts: FetchedFile[] = [];
  for (const [n, start] of startsOf(fetched, choice).entries()) {
    const each = fetched[n];
    if (each !== undefined) {
      const isCut = start > 0 || (each.clock === 'held' && choice.seconds !== null);
      parts.push(isCut || isMistimed(each.probe) ? await index(each, tools, signal) : each);
    }
  }
  return parts;
}

function isMistimed({ format, audio }: FileProbe): boolean {
  return /^(aac|ogg)$/.test(format) && audio?.codec === changingSound;
}

/** Returns a copy with an index and what it says of the length, which other formats only guess. */
async function index(part: FetchedFile, tools: MediaTools, signal: AbortSignal): Promise<FetchedFile> {
  const { file, probe } = part;
  const holds = (stream: Stream | null) => canHold(containers.mkv, null, stream?.codec ?? null);
  if (/^(?:mov|matroska)/.test(probe.format) || isUntimed(probe) || !holds(probe.video)) return part;
  const streams = [probe.video, probe.audio].filter((stream) => stream !== null);
  const maps = streams.flatMap((stream) => ['-map', `0:${stream.index}`]);
  const indexed = `${file}.indexed`;
  const codecs = ['-c', 'copy', ...(holds(probe.audio) ? [] : ['-c:a', 'flac', '-sample_fmt', 's16'])];
  // A FLAC has samples and no times.
  const muxer = isMistimed(probe) ? 'flac' : 'matroska';
  await runFfmpeg(ffmpegArguments([part], [...maps, ...codecs, '-f', muxer], indexed), tools, signal);
  await unlink(file);
  const { duration } = (await probeFile(indexed, 'none', tools, signal)).probe;
  const [video, audio] = [probe.video, probe.audio].map((stream) =>
    stream === null ? null : { ...stream, index: streams.indexOf(stream) },
  );
  return {
    ...part,
    renumbered: false,
    late: false,
    clock: 'even',
    file: indexed,
    probe: { ...probe, duration, video: video ?? null, audio: audio ?? null },
  };
}
