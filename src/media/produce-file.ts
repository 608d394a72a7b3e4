import { rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { FailureCode } from '../base/errors.ts';
import type { AttemptProgress } from '../model/attempt-protocol.ts';
import { recordingStage } from '../model/attempt-stages.ts';
import { removeNames } from './child-folder.ts';
import { chooseFormatsFor, type FormatChoice, willEncode } from './choose-formats.ts';
import { describeMedia } from './describe-media.ts';
import { ffmpegArguments } from './ffmpeg-arguments.ts';
import { statedLength } from './file-lengths.ts';
import { findHeldPictures } from './held-picture.ts';
import { indexParts } from './index-parts.ts';
import { makeOverallProgress, type OverallProgress } from './overall-progress.ts';
import { type Endable, endable, withDeadline } from './page-deadline.ts';
import { type ConversionPlan, planConversion } from './plan-conversion.ts';
import type { FetchedFile } from './probe-file.ts';
import { probeParts } from './probe-parts.ts';
import { prove } from './prove-file.ts';
import { runFfmpeg } from './run-ffmpeg.ts';
import { endsTooEarly, isBrokenOff, isSqueezed } from './section-messages.ts';
import type { SourcePage } from './source-page.ts';
import { Failed, type MediaOrder, type MediaTools, type Produced, SectionFailed } from './tools.ts';
import { watchFetch } from './watch-fetch.ts';
import { type FetchEnd, startYtDlp, type YtDlp } from './yt-dlp.ts';

/** Seconds of a live source below which what was recorded before it changes is not worth a file. */
const minRecordingSeconds = 1.5;
/** Failures of a cut fetch after which the whole is fetched instead. */
const mendable = new Set<FailureCode>([
  'file_damaged',
  'source_incomplete',
  'source_broken',
  'unclassified',
  'deleted',
  'source_blocked',
  'unsupported_url',
]);

/** Makes the file of an order in the private folder and proves it; throws a `Failed`. Tries twice when that may help. */
export async function produce(
  order: MediaOrder,
  tools: MediaTools,
  onProgress: (progress: AttemptProgress) => void,
  signal: AbortSignal,
): Promise<Produced> {
  let highest = 0;
  let isRecording = false;
  const report = (next: AttemptProgress) => {
    highest = Math.max(highest, next.progress);
    isRecording ||= next.stage === recordingStage;
    onProgress({ ...next, progress: highest });
  };
  try {
    return await produceOnce(order, tools, report, signal, true);
  } catch (error) {
    signal.throwIfAborted();
    // The past of a live source is gone.
    const again =
      error instanceof Failed &&
      !isRecording &&
      (error.code === 'file_damaged' || (error instanceof SectionFailed && mendable.has(error.code)));
    if (!again && !(error instanceof RecordingFailed)) throw error;
    await removeNames(tools.folder, /^(part|media)/);
    return await produceOnce(order, tools, report, signal, false);
  }
}

/** A live source went on in another size or codec so soon that its recording begins anew. */
class RecordingFailed extends Failed {}

async function produceOnce(
  order: MediaOrder,
  tools: MediaTools,
  onProgress: (progress: AttemptProgress) => void,
  signal: AbortSignal,
  mayCut: boolean,
): Promise<Produced> {
  const ends = endable(signal);
  onProgress({ progress: 0, stage: 'inspect', speed_bytes: null, eta_seconds: null });
  await using driver = startYtDlp('download', order, tools, ends.signal);
  const page = await withDeadline(driver.page, tools.limits.inspectSeconds, ends.end);
  if (page.fields.live_status === 'is_upcoming') throw notStarted(page);
  const found = chooseFormatsFor(page, order);
  const choice = mayCut || page.live ? found : { ...found, section: false };
  const progress = makeOverallProgress(
    willEncode(choice, page, order),
    page.live ? asRecording(onProgress) : onProgress,
    () => performance.now(),
  );
  return await makeFile(driver, order, { page, choice }, { tools, progress, ...ends });
}

/** Names the fetch of a live source as what it is: it cannot be repeated, so the controller interrupts it for nobody. */
function asRecording(onProgress: (progress: AttemptProgress) => void): typeof onProgress {
  return (next) => onProgress(next.stage === 'fetch' ? { ...next, stage: recordingStage } : next);
}

interface Chosen {
  readonly page: SourcePage;
  readonly choice: FormatChoice;
}

interface Making extends Endable {
  readonly tools: MediaTools;
  readonly progress: OverallProgress;
}

/** Runs the steps from chosen formats to a proven file: fetch, probe, index, plan, convert, prove, describe. */
async function makeFile(driver: YtDlp, order: MediaOrder, chosen: Chosen, making: Making): Promise<Produced> {
  const { page, choice } = chosen;
  const { tools, progress, signal } = making;
  const end = await fetchParts(driver, chosen, making);
  const stderr = await driver.end();
  const isCut = choice.section && !page.live;
  if (isCut && isBrokenOff(stderr)) throw new SectionFailed('source_broken', stderr);
  if (end.broken && end.seconds !== null && end.seconds < minRecordingSeconds) {
    throw new RecordingFailed('source_incomplete', `the stream changes after ${end.seconds} s`);
  }
  progress.at('convert', 0);
  const parts = await probeParts(order, page, choice, tools, signal);
  const isWrong = isCut && parts.some(({ probe }) => isSqueezed(stderr, probe.format));
  if (isWrong || endsTooEarly(stderr, page, choice, parts))
    throw new SectionFailed('source_incomplete', 'the part ends too early, or is squeezed');
  const fetched = await indexParts(parts, choice, tools, signal);
  // Sound and picture break off one after the other.
  const wanted = end.broken ? { ...choice, seconds: end.seconds } : choice;
  const plan = planConversion(fetched, wanted, order, await findHeldPictures(fetched, wanted, tools, signal));
  const file = join(tools.folder, `media.${plan.container.ext}`);
  await convert(fetched, plan, file, making);
  progress.at('prove', 0);
  const known = plan.output === null ? (fetched[0] ?? null) : null;
  const ended = page.live && end.seconds !== null ? end.seconds - choice.start : Number.POSITIVE_INFINITY;
  const stated = statedLength(plan, fetched, chosen, end.listed);
  const promised = stated === null ? null : Math.min(stated, ended);
  const proof = await prove(file, { plan, promised, known }, tools, signal);
  progress.at('prove', 1);
  const facts = { ext: plan.container.ext, probe: proof.probe };
  const metadata = describeMedia(page, { query: String(order.args.query) }, null, facts);
  const { ext, content_type } = plan.container;
  return { file, metadata, bytes: proof.bytes, sha256: proof.sha256, content_type, ext };
}

async function fetchParts(
  driver: YtDlp,
  { page, choice }: Chosen,
  { tools, progress, end }: Making,
): Promise<FetchEnd> {
  const expected = choice.parts.map((part) => part.bytes);
  const arrived = choice.parts.map(() => 0);
  let onDisk = 0;
  const tell = () => {
    const total = expected.reduce<number>((sum, bytes) => sum + (bytes ?? 0), 0);
    const bytes = Math.max(
      onDisk,
      arrived.reduce((sum, each) => sum + each, 0),
    );
    progress.at('fetch', total > 0 ? Math.min(0.99, bytes / total) : 0, bytes);
  };
  progress.at('fetch', 0, 0);
  const measured = (bytes: number) => {
    onDisk = bytes;
    tell();
  };
  // A section of unknown length may be a radio, which sends no faster than it plays.
  const paced = page.live || (choice.section && choice.expected === null);
  const stop = watchFetch(tools.folder, tools.limits, paced, measured, end);
  try {
    return await driver.fetch(choice.parts, choice.section ? choice.seconds : null, ({ part, bytes, total }) => {
      // A child may name any part, and a list with one far behind its end takes minutes to add up.
      if (arrived[part] === undefined) return;
      arrived[part] = bytes;
      if (total !== null && !choice.section) expected[part] = total;
      tell();
    });
  } catch (error) {
    if (error instanceof Failed && choice.section && !page.live) throw new SectionFailed(error.code, error.detail);
    throw error;
  } finally {
    stop();
  }
}

async function convert(
  fetched: readonly FetchedFile[],
  plan: ConversionPlan,
  file: string,
  { tools, progress, signal }: Making,
): Promise<void> {
  if (plan.output === null) return await rename(fetched[0]?.file ?? '', file);
  const onLine = (text: string) => {
    const [name, value] = text.split('=');
    if (name === 'out_time_us' && plan.length) progress.at('convert', Number(value) / 1e6 / plan.length);
  };
  await runFfmpeg(ffmpegArguments(fetched, plan.output, file, plan.starts), tools, signal, onLine);
  await Promise.all(fetched.map((each) => unlink(each.file)));
}

function notStarted(page: SourcePage): Failed {
  const at = page.fields.release_timestamp;
  if (typeof at !== 'number' || at <= 0 || at >= 1e11) return new Failed('not_started');
  const start = new Date(at * 1000).toISOString();
  return new Failed('not_started', '', `This content has not started yet: it starts at ${start}`);
}
