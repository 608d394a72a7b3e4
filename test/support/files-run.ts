import { Session } from 'node:inspector/promises';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './tree.ts';
import { until } from './until.ts';

/** A V8 whose function calls are counted. */
export interface CountedProcess {
  ask(method: string, params?: object): Promise<object>;
  close(): void;
}

interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly { readonly ranges: readonly { readonly count: number }[] }[];
  }[];
}

const maxRounds = 50;

/** Counts calls in this process. */
export async function countHere(): Promise<CountedProcess> {
  const session = new Session();
  session.connect();
  const ask = (method: string, params: object = {}) => session.post(method, params) as unknown as Promise<object>;
  return begin({ ask, close: () => session.disconnect() });
}

/** Counts calls in another process, which was started with `--inspect` and has said where it listens. */
export async function countIn(output: () => string): Promise<CountedProcess> {
  const urlOf = () => /Debugger listening on (ws:\S+)/.exec(output())?.[1];
  const socket = new WebSocket((await until(urlOf, 10, 'the process can be inspected'))!);
  const waiting = new Map<number, PromiseWithResolvers<object>>();
  socket.addEventListener('message', ({ data }) => {
    const { id, result, error } = JSON.parse(String(data));
    if (error) waiting.get(id)?.reject(new Error(error.message));
    else waiting.get(id)?.resolve(result);
  });
  const opened = Promise.withResolvers<unknown>();
  socket.addEventListener('open', opened.resolve);
  socket.addEventListener('error', opened.reject);
  await opened.promise;
  const ask = (method: string, params: object = {}) => {
    const answer = Promise.withResolvers<object>();
    socket.send(JSON.stringify({ id: waiting.size, method, params }));
    waiting.set(waiting.size, answer);
    return answer.promise;
  };
  return begin({ ask, close: () => socket.close() });
}

async function begin(counted: CountedProcess): Promise<CountedProcess> {
  await counted.ask('Profiler.enable');
  await counted.ask('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  return counted;
}

/** Work whose files are counted. */
export interface CountedWork {
  /** Runs before each `run`, uncounted. */
  readonly prepare?: () => Promise<unknown>;
  readonly run: () => Promise<unknown>;
}

/**
 * Returns the files of `src` of which a function runs in every round of the work. Rounds go on while these are more than
 * `maxFiles`: on a busy machine timers may fire in many rounds, but not in all of 50.
 */
export async function listFilesRun(
  counted: CountedProcess,
  maxFiles: number,
  { prepare = async () => {}, run }: CountedWork,
): Promise<string[]> {
  // The first one may load something or fill a cache.
  await prepare();
  await run();
  let files: string[] = [];
  for (let round = 1; round <= maxRounds; round++) {
    await prepare();
    await counted.ask('Profiler.takePreciseCoverage');
    await run();
    const { result } = (await counted.ask('Profiler.takePreciseCoverage')) as Coverage;
    const ran = result.filter(({ functions }) => functions.some(({ ranges }) => ranges[0]!.count > 0));
    const paths = new Set(ran.filter(({ url }) => url.startsWith('file:')).map(({ url }) => pathOf(url)));
    files =
      round === 1 ? [...paths].filter((path) => path.startsWith('src/')) : files.filter((path) => paths.has(path));
    if (files.length <= maxFiles) break;
  }
  return files.sort();
}

function pathOf(url: string): string {
  return relative(root, fileURLToPath(url));
}
