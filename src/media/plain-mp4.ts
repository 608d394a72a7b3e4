import { membersOf } from '../base/parse-json.ts';
import { openRegular } from './child-folder.ts';
import { ffprobeArguments, fileFacts, type PacketCount } from './ffmpeg-arguments.ts';
import { boxesOf } from './mp4-boxes.ts';
import {
  askFfprobe,
  type FetchedFile,
  type FileProbe,
  maxLengthErrorSeconds,
  type Probed,
  parseProbe,
  probeFile,
  readProbe,
} from './probe-file.ts';
import { asList, asText, positive } from './source-page.ts';
import type { MediaTools } from './tools.ts';

/** A file of the usual kinds has three or four boxes before its pictures. */
const maxBoxes = 64;
/** An mp4 that needs no change has two tracks at most, of which ffprobe tells some 100 lines. Chapters of a hostile MP4 of 6 MB are 8 million lines, which took 1 GB here. */
const maxLines = 20_000;
/** Tags that say nothing but how a file was made. */
const technicalTags = /^(major_brand|minor_version|compatible_brands|encoder|creation_time)$/i;

/**
 * Probes a whole file. `plain` is true for an mp4 as ffmpeg makes them here: its index lies before its pictures, so that it plays while it
 * arrives, and it has no words of its maker, such as title, place, comment and chapters. It tells the length of its tracks. HEVC has the
 * name that Apple's players want.
 */
export async function probeWhole(
  file: string,
  count: PacketCount,
  tools: MediaTools,
  signal: AbortSignal,
): Promise<Probed & Pick<FetchedFile, 'plain'>> {
  if (!(await hasIndexInFront(file))) return await probeFile(file, count, tools, signal);
  // One ffprobe instead of two: loading its libraries takes longer than reading a short film.
  const entries = [...fileFacts, 'format_tags', 'chapter=id', 'stream=codec_tag_string'];
  const { ended, json } = await readJson(ffprobeArguments(file, count, entries), tools, signal);
  // ffprobe is ended when a tag is too long, or when it tells too much.
  if (json === null) return await probeFile(file, count, tools, signal);
  const probe = readProbe(json);
  return { probe, ended, count, plain: probe.format.startsWith('mov') && !needsChange(json, probe) };
}

async function hasIndexInFront(file: string): Promise<boolean> {
  await using handle = await openRegular(file);
  let left = maxBoxes;
  for await (const { kind } of boxesOf(handle, 0, (await handle.stat()).size)) {
    if (kind === 'moov') return true;
    if (kind === 'mdat' || --left === 0) return false;
  }
  return false;
}

/** Returns true for an mp4 whose edit list leaves the beginning of its picture out, although players must decode it. */
export async function hidesBeginning(
  file: string,
  picture: number,
  tools: MediaTools,
  signal: AbortSignal,
): Promise<boolean> {
  const first = ['-select_streams', String(picture), '-read_intervals', '%+#1'];
  const { json } = await readJson([...first, ...ffprobeArguments(file, 'none', ['packet=flags'])], tools, signal);
  return asList(json?.packets).some((packet) => asText(membersOf(packet).flags).includes('D'));
}

function needsChange(
  { format, chapters, streams }: Readonly<Record<string, unknown>>,
  { duration }: FileProbe,
): boolean {
  const tags = Object.keys(membersOf(membersOf(format).tags));
  const isMistold = Math.abs((positive(membersOf(format).duration) ?? 0) - (duration ?? 0)) > maxLengthErrorSeconds;
  const isMisnamed = asList(streams).some((stream) => membersOf(stream).codec_tag_string === 'hev1');
  return isMistold || isMisnamed || tags.some((name) => !technicalTags.test(name)) || asList(chapters).length > 0;
}

/** Returns the JSON that ffprobe wrote, `null` when it failed or wrote more than is read. */
async function readJson(words: readonly string[], tools: MediaTools, signal: AbortSignal) {
  const { ended, text } = await askFfprobe(words, maxLines, tools, signal);
  return { ended, json: ended.code === 0 && text !== null ? membersOf(parseProbe(text)) : null };
}
