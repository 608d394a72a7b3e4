import { type ChildProcess, fork, spawn } from 'node:child_process';
import { compileCache } from './support/compile-cache.ts';

/** Numbers of tests that passed, failed and were skipped, and a line for each failure. */
export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
  failures: string[];
}

/** Words of a run of mocha: what begins, what failed, and in the end how many tests passed, failed, were skipped and never ran. */
export type RunMessage =
  | { readonly at: string }
  | { readonly failure: string }
  | { readonly passed: number; readonly failed: number; readonly skipped: number; readonly unrun: number };

/** Files of tests that run in one process, after what they need has been built, or a command. */
export interface Batch {
  readonly group: string;
  readonly what: string;
  readonly command?: readonly string[];
  readonly build?: string;
}

/** Batches that compute and run at once: as many as there are processors. */
const mostBusy = 2;
/** Batches that mostly wait and run at once beside one that computes. */
const mostWaiting = 2;

/** After its tests, a process has this long to end: a busy machine may take seconds. */
const maxEndMs = 15_000;
/** A longer message of a failure is cut in the list of failures; the output of its batch has it whole. */
const maxFailureLetters = 1_000;

/**
 * Runs batches that compute and, beside them, batches that mostly wait, each kind in its order, but a build is awaited by one
 * batch while others need none. When all that wait are over, two that compute run at once. The output of a batch is shown when
 * it is over, so that outputs do not mix. Each build runs once, and its time is not that of the batch that waited for it.
 */
export async function runInLanes(
  busy: readonly Batch[],
  waiting: readonly Batch[],
  over: (batch: Batch, tally: Tally, milliseconds: number) => void,
): Promise<void> {
  const left = { busy: [...busy], waiting: [...waiting] };
  const output = busy.length + waiting.length === 1 ? 'inherit' : 'pipe';
  const building = new Set<string>();
  const builds = new Map<string, Promise<boolean>>();
  let running = 0;
  const runNext = async (first: 'busy' | 'waiting'): Promise<boolean> => {
    const isBusy = left[first].length > 0 ? first === 'busy' : first === 'waiting';
    if (isBusy && running === mostBusy) return false;
    const batches = left[isBusy ? 'busy' : 'waiting'];
    const free = batches.findIndex(({ build = '' }) => !building.has(build));
    const [batch] = batches.splice(Math.max(free, 0), 1);
    if (batch === undefined) return false;
    const { build = '' } = batch;
    running += Number(isBusy);
    if (build !== '' && !builds.has(build)) {
      building.add(build);
      builds.set(build, runBuild(build, output));
    }
    const isBuilt = (await builds.get(build)) ?? true;
    building.delete(build);
    const start = performance.now();
    const tally = isBuilt ? await runBatch(batch, output) : skip(build);
    running -= Number(isBusy);
    over(batch, tally, performance.now() - start);
    return true;
  };
  const lane = async (first: 'busy' | 'waiting') => {
    while (await runNext(first));
  };
  await Promise.all([lane('busy'), ...Array.from({ length: mostWaiting }, () => lane('waiting'))]);
}

async function runBuild(build: string, output: 'inherit' | 'pipe'): Promise<boolean> {
  const start = performance.now();
  const { passed: isBuilt } = await runCommand([build], output);
  console.log(`-- ${build}: ${isBuilt ? 'built' : 'failed'} in ${((performance.now() - start) / 1000).toFixed(1)} s`);
  return isBuilt;
}

function skip(build: string): Tally {
  console.log(`skipped: ${build} failed`);
  return { passed: 0, failed: 0, skipped: 1, failures: [] };
}

async function runBatch({ what, command }: Batch, output: 'inherit' | 'pipe'): Promise<Tally> {
  if (command === undefined) return runMocha(what, output);
  const { passed, firstLine } = await runCommand(command, output);
  const failures = passed ? [] : [[what, firstLine].filter(Boolean).join(': ').slice(0, maxFailureLetters)];
  return { passed: Number(passed), failed: Number(!passed), skipped: 0, failures };
}

/** Runs a command; the first line that it said is '' where it said it to the terminal. */
async function runCommand([command = '', ...args]: readonly string[], output: 'inherit' | 'pipe') {
  const child = spawn(command, args, { stdio: ['ignore', output, output] });
  const said = hear(child);
  // A command that is not there is closed too.
  child.on('error', () => undefined);
  const code = await new Promise((resolve) => child.on('close', resolve));
  process.stdout.write(said());
  return { passed: code === 0, firstLine: said().trim().split('\n')[0] ?? '' };
}

/** Runs files in a process of their own. */
function runMocha(files: string, output: 'inherit' | 'pipe'): Promise<Tally> {
  const reporter = process.stdout.isTTY ? 'spec' : 'dot';
  const mocha = fork('node_modules/mocha/bin/mocha.js', ['--reporter', reporter, files], {
    stdio: ['inherit', output, output, 'ipc'],
    // Control planes are written in Go: there is more memory than there are processors for their many starts.
    env: { GOGC: '400', NODE_COMPILE_CACHE: compileCache, ...process.env },
  });
  const said = hear(mocha);
  const seen: Seen = { failures: [], at: '', isStuck: false };
  let limit: NodeJS.Timeout | undefined;
  mocha.on('message', (message: RunMessage) => {
    if ('at' in message) seen.at = message.at;
    else if ('failure' in message) seen.failures.push(message.failure.slice(0, maxFailureLetters));
    else {
      seen.counts = message;
      // Mocha ends when nothing is open any more; a test that leaves a socket or a timer would hold it for ever.
      limit = setTimeout(() => {
        seen.isStuck = true;
        mocha.kill();
      }, maxEndMs);
    }
  });
  return new Promise((resolve) => {
    mocha.on('close', (code, signal) => {
      clearTimeout(limit);
      process.stdout.write(said());
      resolve(judge(files, seen, code ?? signal));
    });
  });
}

/** All that a run of mocha has told, and whether it had to be ended. */
interface Seen {
  readonly failures: string[];
  at: string;
  counts?: Extract<RunMessage, { readonly passed: number }>;
  isStuck: boolean;
}

/** Returns what a process counted. One that ends without its counts, or badly in spite of them, counts as a failure. */
function judge(files: string, { failures, at, counts, isStuck }: Seen, end: number | string | null): Tally {
  const { unrun, ...tally } = { passed: 0, failed: failures.length, skipped: 0, unrun: 0, ...counts };
  if (unrun > 0 && failures.length > 0) failures.push(`${files}: ${unrun} tests did not run, because a hook failed`);
  if (counts !== undefined && (tally.failed > 0 || (end === 0 && !isStuck))) return { ...tally, failures };
  const how = `The process ended with ${end}`;
  const where = at === '' ? 'before its first test' : `in ${at}`;
  const early = counts === undefined ? `${how} ${where}` : `${how} after its tests`;
  const fault = isStuck ? 'The tests leave something open, so their process does not end' : early;
  console.log(fault);
  return { ...tally, failed: tally.failed + 1, failures: [...failures, `${files}: ${fault}`] };
}

/** Collects the output of a process on both streams. */
function hear({ stdout, stderr }: ChildProcess): () => string {
  let said = '';
  for (const stream of [stdout, stderr]) stream?.setEncoding('utf8').on('data', (piece) => (said += piece));
  return () => said;
}
