import { addAbortListener } from 'node:events';
import { availableParallelism } from 'node:os';
import { retry } from '../base/backoff.ts';
import { failures } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { copiesOfFile } from '../base/resource-limits.ts';
import { Failed, type MediaOrder, type MediaTools, type Produced } from '../media/tools.ts';
import type { AttemptProgress, AttemptSpec } from '../model/attempt-protocol.ts';
import { recordingStage } from '../model/attempt-stages.ts';
import { type Metadata, shortenMetadata } from '../model/metadata.ts';
import { type Delivered, maxDetailLength, type Outcome, readDetail } from '../model/outcome.ts';
import { type Breach, breaches, type ChildLimits } from './child-limits.ts';
import type { EgressFault, NoteFault } from './egress-forwarder.ts';
import { readableFolders } from './find-programs.ts';
import { AttemptOver, type GatewayClient, GatewayRefusal } from './gateway-client.ts';
import { startProgressReporter } from './progress-reporter.ts';
import type { StageClock } from './stage-clock.ts';
import { uploadFile } from './upload-file.ts';
import { openWorkspace, type Workspace, type WorkspaceOptions } from './workspace.ts';

export interface MediaActions {
  readonly produce: (
    order: MediaOrder,
    tools: MediaTools,
    onProgress: (progress: AttemptProgress) => void,
    signal: AbortSignal,
  ) => Promise<Produced>;
  readonly inspectUrl: (order: MediaOrder, tools: MediaTools, signal: AbortSignal) => Promise<Metadata>;
}

type SharedOptions = 'programs' | 'root' | 'cgroups' | 'egress' | 'sandbox' | 'signal';

export interface AttemptOptions extends Pick<WorkspaceOptions, SharedOptions> {
  readonly gateway: GatewayClient;
  readonly media: MediaActions;
  readonly plugins: readonly string[];
  readonly memoryBytes: number;
  readonly slowBytes: number;
  readonly slowSeconds: number;
  readonly patienceSeconds: number;
  readonly stages: StageClock;
  readonly log: Log;
}

class AttemptCut extends Error {
  readonly reason: Breach | 'over' | 'lost' | 'stopped';

  constructor(why: AttemptCut['reason']) {
    super(`cut short: ${why}`);
    this.reason = why;
  }
}

/** The media failed while egress could not be used. */
class EgressAway extends Error {
  constructor(fault: EgressFault, cause: unknown) {
    super(fault, { cause });
  }
}

/** The last connection to egress: `isTried` is false while the present run of the media has made none. */
interface EgressWay {
  fault: EgressFault | null;
  isTried: boolean;
}

const awayBackoff = { firstMs: 1_000, maxMs: 30_000, hasJitter: true };
const awayText = 'This service had no way to the Internet for as long as the job could wait';

/** Time before the end of an attempt in which it still tells that its file could not be stored. */
const lastWordMs = 30_000;
/** Progress when the file is made; the upload is the rest. */
const madePercent = 90;
/** yt-dlp counts bytes too and reports a clear failure: the kernel's limit comes a little later. */
const overshootBytes = 2 ** 24;
/** Threads count as processes: those of ffmpeg and Node, and two for each connection. */
const maxProcesses = 512;

/** Runs one attempt; returns its outcome, `null` when the job is over. Afterwards nothing is left but the stored file. */
export async function runAttempt(options: AttemptOptions): Promise<Outcome | null> {
  const { gateway, signal, log, stages } = options;
  const cut = new AbortController();
  const cutShort = (why: AttemptCut['reason']) => cut.abort(new AttemptCut(why));
  using _stop = addAbortListener(signal, () => cutShort('stopped'));
  const reporter = startProgressReporter(options, cutShort);
  const way: EgressWay = { fault: null, isTried: false };
  let timer: NodeJS.Timeout | undefined;
  try {
    const spec = await readSpec(gateway, log);
    stages.enter('inspect');
    const lastsMs = spec.limits.seconds * 1000;
    const timed = { ...options, endsAtMs: performance.now() + lastsMs };
    timer = setTimeout(() => cutShort('time'), lastsMs);
    const run = () => work(way, spec, timed, cutShort, reporter.note, cut.signal);
    const done = await repeatUntilOnline(run, log, cut.signal);
    // The gateway takes no longer ones.
    return { is: 'done', ...done, metadata: shortenMetadata(done.metadata) };
  } catch (error) {
    const outcome = outcomeOf(cut.signal.aborted ? cut.signal.reason : error, log);
    const waited = way.fault !== null && outcome?.is === 'failed' && outcome.code === 'timeout';
    return waited ? { ...outcome, text: awayText } : outcome;
  } finally {
    clearTimeout(timer);
    reporter.stop();
  }
}

/** A gateway that cannot be reached, as from a node without a network, tells nothing of the job: its attempt is interrupted. */
async function readSpec(gateway: GatewayClient, log: Log): Promise<AttemptSpec> {
  try {
    return await gateway.readSpec();
  } catch (error) {
    if (error instanceof AttemptOver || error instanceof GatewayRefusal) throw error;
    log.warn('the gateway gives no order', { error });
    throw new AttemptCut('lost');
  }
}

/** Runs the media again, until the attempt is cut short, as long as it fails for want of egress. */
function repeatUntilOnline<T>(run: () => Promise<T>, log: Log, signal: AbortSignal): Promise<T> {
  const delayOf = (error: unknown, delayMs: number) => {
    if (!(error instanceof EgressAway)) return null;
    log.warn('the attempt waits for egress', { fault: error.message, seconds: Math.round(delayMs / 1000) });
    return delayMs;
  };
  return retry(run, { ...awayBackoff, signal, delayOf });
}

async function work(
  way: EgressWay,
  spec: AttemptSpec,
  options: AttemptOptions & { readonly endsAtMs: number },
  onBreach: (breach: Breach) => void,
  note: (progress: AttemptProgress) => void,
  signal: AbortSignal,
): Promise<{ metadata: Metadata; delivered: Delivered | null }> {
  const { media, gateway, egress, endsAtMs, patienceSeconds } = options;
  way.isTried = false;
  const noteFault: NoteFault = (_, fault) => void Object.assign(way, { fault, isTried: true });
  const workspace = await openWorkspace({ ...workspaceOptions(spec, options, onBreach, signal), noteFault });
  try {
    const tools = toolsOf(spec, options, workspace);
    const tellAway = (error: unknown) => {
      // What the caller has to mend was read from the source.
      const isRead = error instanceof Failed && failures[error.code].blame === 'caller';
      throw way.fault === null || !way.isTried || isRead ? error : new EgressAway(way.fault, error);
    };
    if (spec.endpoint === 'metadata') {
      const asked = media.inspectUrl(spec, tools, signal);
      return { metadata: await asked.catch(tellAway), delivered: null };
    }
    let isRecorded = false;
    const onProgress = (made: AttemptProgress) => {
      isRecorded ||= made.stage === recordingStage;
      note({ ...made, progress: Math.floor((made.progress * madePercent) / 100) });
    };
    const produced = await media.produce(spec, tools, onProgress, signal).catch(tellAway);
    note({ progress: madePercent, stage: 'upload', speed_bytes: null, eta_seconds: null });
    const store = { gateway, egress, folder: workspace.folder, partBytes: spec.part_bytes, patienceSeconds, signal };
    // The past of a live source is gone: what was recorded waits for the store as long as the attempt lasts.
    const waiting = isRecorded ? { ...store, earliestEndMs: endsAtMs - lastWordMs } : store;
    return { metadata: produced.metadata, delivered: await uploadFile(produced, waiting) };
  } finally {
    await workspace.close();
  }
}

function workspaceOptions(
  { limits: { file_bytes: fileBytes, seconds }, cookies }: AttemptSpec,
  options: AttemptOptions,
  onBreach: (breach: Breach) => void,
  signal: AbortSignal,
): WorkspaceOptions {
  const { root, cgroups, egress, sandbox, programs, plugins, memoryBytes } = options;
  const limits: ChildLimits = {
    memoryBytes,
    fileBytes: fileBytes + overshootBytes,
    folderBytes: copiesOfFile * fileBytes,
    cpuSeconds: seconds * availableParallelism(),
    processes: maxProcesses,
  };
  const readable = readableFolders(programs, plugins);
  return { root, cgroups, egress, sandbox, limits, programs, readable, cookies, onBreach, signal };
}

function toolsOf(
  { limits: { file_bytes: fileBytes, inspect_seconds: inspectSeconds } }: AttemptSpec,
  { programs, plugins, slowBytes, slowSeconds }: AttemptOptions,
  { folder, wrappers, proxy, cookies, run }: Workspace,
): MediaTools {
  const limits = { fileBytes, inspectSeconds, slowBytes, slowSeconds };
  return { ...programs, plugins, folder, wrappers, proxy, cookies, run, limits };
}

function outcomeOf(thrown: unknown, log: Log): Outcome | null {
  if (thrown instanceof AttemptCut) return outcomeOfCut(thrown.reason);
  if (thrown instanceof AttemptOver) return null;
  if (thrown instanceof Failed) {
    log.info('attempt failed', { code: thrown.code, detail: thrown.detail });
    const told = { is: 'failed', code: thrown.code, text: thrown.message } as const;
    return failures[thrown.code].blame === 'us' ? { ...told, detail: readDetail(thrown) } : told;
  }
  const error = String(thrown instanceof Error ? thrown.stack : thrown);
  log.error('attempt broke off', { error });
  return { is: 'failed', code: 'worker_failed', detail: error.slice(0, maxDetailLength) };
}

function outcomeOfCut(why: AttemptCut['reason']): Outcome | null {
  switch (why) {
    case 'over':
      return null;
    case 'stopped':
      return { is: 'interrupted', reason: 'The worker was told to stop' };
    case 'lost':
      return { is: 'interrupted', reason: 'The gateway could not be reached' };
    default:
      return { is: 'failed', code: breaches[why] };
  }
}
