import { join } from 'node:path';
import { membersOf, parseJson } from '../base/parse-json.ts';
import type { ChosenFormat } from './choose-formats.ts';
import { classifyFailure, readFailure } from './classify-failure.ts';
import { mediaEnv } from './ffmpeg-arguments.ts';
import { asList, positive, readPage, type SourcePage } from './source-page.ts';
import { Failed, type MediaOrder, type MediaTools } from './tools.ts';

interface FetchProgress {
  readonly part: number;
  readonly bytes: number;
  readonly total: number | null;
}

/** End of a fetch; `seconds` and `broken` are those of a live source. */
export interface FetchEnd {
  /** Seconds that it lasted when it ended before, else `null`. */
  readonly seconds: number | null;
  /** True when it goes on as one that the same file cannot hold. */
  readonly broken: boolean;
  /** Seconds of the longest part by the lists of pieces, `null` when a part has none. */
  readonly listed: number | null;
}

/** The project's own Python, which has yt-dlp. */
export const projectPython = join(import.meta.dirname, '..', '..', '.cache', 'python', 'bin', 'python3');

/** Prints the version in the name of the package's folder of metadata: `importlib.metadata` takes 60 ms of CPU, and each start asks three times. */
const ytDlpVersion = `import os, sys
names = (name for path in sys.path if os.path.isdir(path) for name in os.listdir(path))
print(next(name[7:-10] for name in names if name.startswith('yt_dlp-') and name.endswith('.dist-info')))`;
export const ytDlpVersionArgs = ['-I', '-c', ytDlpVersion];

/** Returns the Unix time of the day that yt-dlp's version begins with, as in `2026.11.10` or `2026.11.10.232810.dev0`. */
export function releaseOf(version: string): number | undefined {
  const [, year, month, day] = /^(\d{4})\.(\d{1,2})\.(\d{1,2})(?:\.|$)/.exec(version) ?? [];
  return year === undefined ? undefined : Date.UTC(Number(year), Number(month) - 1, Number(day)) / 1000;
}

/** Flags of Python: no user packages or environment, no bytecode files, UTF-8 in every locale. */
export const pythonFlags = ['-I', '-B', '-X', 'utf8'];

export type YtDlp = ReturnType<typeof startYtDlp>;
type DriverAction = 'inspect' | 'download' | 'list';

/** Starts yt-dlp for the URL of an order. `download` keeps it waiting for a fetch. */
export function startYtDlp(action: DriverAction, order: MediaOrder, tools: MediaTools, signal: AbortSignal) {
  const page = Promise.withResolvers<SourcePage>();
  const done = Promise.withResolvers<FetchEnd>();
  const entries = Promise.withResolvers<readonly string[]>();
  const answers = [page, done, entries];
  // A promise that nobody awaits must not end the process.
  for (const { promise } of answers) promise.catch(() => undefined);
  const own = new AbortController();
  let fragmented = false;
  let reportProgress: (progress: FetchProgress) => void = () => undefined;
  let hasFailed = false;
  const fail = (error: unknown) => {
    hasFailed = true;
    for (const { reject } of answers) reject(error);
  };
  const onLine = (text: string) => {
    // The driver ends with a failure. A child that was taken over may go on, and each further failure takes milliseconds to classify.
    if (hasFailed) return;
    // A library may print; only JSON lines are answers.
    const said = membersOf(parseJson(text));
    if (said.info !== undefined) page.resolve(readPage(said.info));
    else if (said.progress !== undefined) reportProgress(readProgress(said.progress));
    else if (said.done !== undefined) done.resolve(readEnd(said.done));
    else if (said.entries !== undefined)
      entries.resolve(asList(said.entries).filter((each) => typeof each === 'string'));
    else if (said.failed !== undefined) fail(toFailed(said.failed, fragmented));
  };
  const ends = AbortSignal.any([signal, own.signal]);
  const options = { folder: tools.folder, env: mediaEnv(tools.folder), onLine, signal: ends };
  const child = tools.run(tools.python, [...pythonFlags, tools.driver], options);
  child.write(JSON.stringify(orderFor(action, order, tools)));
  const ended = child.ended.then(({ code, signal: by, stderr }) => {
    if (signal.aborted) fail(signal.reason);
    else fail(new Failed(by === 'SIGXFSZ' ? 'file_too_large' : 'worker_failed', `driver: ${code ?? by} ${stderr}`));
    return stderr;
  });
  /** Ends yt-dlp and all that it started; resolves with their standard error when nothing of that runs any more. */
  const end = () => {
    own.abort();
    return ended;
  };
  return {
    /** Resolves when yt-dlp has read the page; rejects with a `Failed`. */
    page: page.promise,
    /** Resolves with the URLs of a playlist that was listed; rejects with a `Failed`. */
    entries: entries.promise,
    /** Fetches parts into files of their names, only the first `seconds` of each unless `null`. Rejects with a `Failed`. */
    fetch: (parts: readonly ChosenFormat[], seconds: number | null, onProgress: (progress: FetchProgress) => void) => {
      reportProgress = onProgress;
      fragmented = parts.some((part) => part.fragmented);
      child.write(JSON.stringify(parts.map(({ id, name, video }) => ({ id, name, video, seconds }))));
      return done.promise;
    },
    end,
    [Symbol.asyncDispose]: async () => void (await end()),
  };
}

function orderFor(action: DriverAction, order: MediaOrder, tools: MediaTools): Record<string, unknown> {
  const { folder, proxy, wrappers, node, plugins, cookies, limits } = tools;
  const url = String(order.args.query);
  const bounds = { file_bytes: limits.fileBytes };
  const list = order.maxEntries === undefined ? {} : { max_entries: order.maxEntries };
  return { action, url, folder, proxy, tools: wrappers, node, plugins, cookies, limits: bounds, ...list };
}

function toFailed(json: unknown, fragmented: boolean): Failed {
  const failure = readFailure(json);
  return new Failed(classifyFailure({ ...failure, fragmented }), `${failure.classes.join(' < ')}: ${failure.message}`);
}

function readEnd(json: unknown): FetchEnd {
  const fields = membersOf(json);
  return { seconds: positive(fields.seconds), broken: fields.broken === true, listed: positive(fields.listed) };
}

function readProgress(json: unknown): FetchProgress {
  const fields = membersOf(json);
  return { part: positive(fields.part) ?? 0, bytes: positive(fields.bytes) ?? 0, total: positive(fields.total) };
}
