import { join } from 'node:path';
import { beginningOf, sizeOf } from './child-folder.ts';
import type { ChosenFormat, FormatChoice } from './choose-formats.ts';
import { refuseParts } from './container-heads.ts';
import { isEdited } from './edit-lists.ts';
import { isEncryptedMp4 } from './encrypted-mp4.ts';
import { inputOptions } from './ffmpeg-arguments.ts';
import { joinRecordings } from './joined-recordings.ts';
import { readPartChanges, refuseChanges, songsOf } from './part-changes.ts';
import { refuseOtherSizes } from './picture-sizes.ts';
import { hidesBeginning, probeWhole } from './plain-mp4.ts';
import {
  changingSound,
  type FetchedFile,
  type FileProbe,
  faultOfBytes,
  type Probed,
  probeFile,
  type Stream,
} from './probe-file.ts';
import { damage } from './prove-file.ts';
import type { SourcePage } from './source-page.ts';
import { Failed, type MediaOrder, type MediaTools, SectionFailed } from './tools.ts';
import type { Medium } from './transport-tables.ts';

const smallBytes = 2 ** 26;

/** Returns the facts of the fetched parts; throws a `Failed` for one of which no file can be made. */
export async function probeParts(
  { args }: MediaOrder,
  page: SourcePage,
  choice: FormatChoice,
  tools: MediaTools,
  signal: AbortSignal,
): Promise<FetchedFile[]> {
  const isWhole = choice.parts.length === 1 && choice.seconds === null && choice.start === 0;
  const fetched: FetchedFile[] = [];
  for (const part of choice.parts) {
    const probed = await probePart(part, isWhole, page, tools, signal);
    const { file } = probed;
    const songs = choice.section ? await songsOf(file, probed.probe.audio?.codec, signal) : 'one';
    if (songs === 'unlike' && !page.live)
      throw new SectionFailed('source_incomplete', 'another song begins in the part');
    const edited = probed.probe.format.startsWith('mov') && (await isEdited(file));
    const probe = songs === 'one' && !edited ? probed.probe : withChangingSound(probed.probe);
    if (part.video) await refuseOtherSizes(probed, probe, choice.section, tools, signal);
    const asked = probe.format.startsWith('mov') && /^(mkv|webm)$/.test(String(args.video_format)) ? probe.video : null;
    const hides = asked !== null && (await hidesBeginning(file, asked.index, tools, signal));
    fetched.push({ ...probed, probe, hides, edited });
  }
  return fetched;
}

/** Returns the facts of a fetched part; throws a `Failed` for one that cannot be read. */
async function probePart(
  part: ChosenFormat,
  isWhole: boolean,
  { direct }: SourcePage,
  tools: MediaTools,
  signal: AbortSignal,
) {
  const { name } = part;
  const file = join(tools.folder, name);
  const size = await sizeOf(file);
  if (size === 0) throw new Failed('file_damaged', `${name} is empty`);
  if (await isEncryptedMp4(file)) throw new Failed('drm_protected', `${name} has encrypted samples`);
  // A small file is read whole at once, in case it is delivered unchanged: that is faster than a second ffprobe.
  const count = size <= smallBytes ? 'shown' : 'none';
  const found = await (isWhole ? probeWhole : probeFile)(file, count, tools, signal);
  const { streams, encrypted, brand } = found.probe;
  const { code, stderr } = found.ended;
  if (encrypted) throw new Failed('drm_protected', `${name} has encrypted samples`);
  if (code !== 0 || streams.length === 0 || brand === 'avif') {
    throw new Failed(direct ? faultOfBytes(await beginningOf(file)) : 'file_damaged', stderr);
  }
  if (damage.test(stderr)) throw new Failed('file_damaged', stderr);
  if (direct) await refuseParts(file, found.probe, signal);
  return await probeToEnd(file, found, part, direct, tools, signal);
}

/** Returns the facts of a part that only its whole tells: ffprobe read its beginning. */
async function probeToEnd(
  file: string,
  found: Probed,
  part: ChosenFormat,
  direct: boolean,
  tools: MediaTools,
  signal: AbortSignal,
) {
  const { format } = found.probe;
  const wanted = part.video ? found.probe : { ...found.probe, video: null };
  const joined = await joinRecordings(file, wanted, direct, tools, signal);
  const changes = await readPartChanges(file, format, signal);
  refuseChanges(changes, found.probe, part, direct);
  const late = format === 'mpegts' && beginsLate(part, found.probe, changes.unlisted);
  const clock = changes.kindOf([found.probe.video, found.probe.audio].map((stream) => stream?.number ?? null));
  const reading = { renumbered: changes.isRenumbered, late, clock };
  const again = joined !== null || late;
  const probed = again ? await probeFile(file, late ? 'shown' : 'none', tools, signal, inputOptions(reading)) : found;
  const { probe } = probed;
  refuseUnseen(part, probe);
  const isChanging = joined?.changingSound || (changes.sound && (probe.audio?.codec === 'aac' || format === 'ogg'));
  return { ...probed, file, probe: isChanging ? withChangingSound(probe) : probe, ...reading };
}

/** Returns true where ffprobe did not find the first pictures or the first sound that are wanted, of which tables tell. */
function beginsLate(part: ChosenFormat, { streams }: FileProbe, unlisted: readonly Medium[]): boolean {
  const isMissing = (kind: Stream['kind'], medium: Medium) => {
    const first = streams.find((stream) => stream.kind === kind);
    return first === undefined ? unlisted.includes(medium) : first.unseen === true;
  };
  return (part.video && isMissing('video', 'picture')) || (part.audio && isMissing('audio', 'sound'));
}

/** Throws a `Failed` for a file that has packets of a wanted kind, of which ffprobe understands none: without them, it would be silent or empty. */
function refuseUnseen(part: ChosenFormat, { streams, ...probe }: FileProbe): void {
  for (const kind of ['video', 'audio'] as const) {
    const isUnread = streams.some((stream) => stream.kind === kind && (stream.counted ?? 0) > 0);
    if (part[kind] && probe[kind] === null && isUnread) throw new Failed('unsupported_url', `its ${kind} is not read`);
  }
}

function withChangingSound(probe: FileProbe): FileProbe {
  return { ...probe, audio: probe.audio && { ...probe.audio, codec: changingSound } };
}
