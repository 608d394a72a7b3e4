import { type ChildProcess, fork, spawn } from 'node:child_process';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Numbers of tests that passed, failed and were skipped, and a line for each failure. */
export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
  failures: string[];
}

/** Files of tests that run in one process, after what they need has been built, or a command. */
export interface Batch {
  readonly group: string;
  readonly what: string;
  readonly command?: readonly string[];
  readonly build?: string;
}

/** The cache of compiled code, which `./trawl` uses too. */
const compiled = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'trawl', 'compile');

/** Batches that compute and run at once: as many as there are processors. */
const mostBusy = 2;
/** Batches that mostly wait and run at once beside one that computes. */
const mostWaiting = 2;

/**
 * Runs batches that compute and, beside them, batches that mostly wait, each kind in its order. When all that wait are over,
 * two that compute run at once. The output of a batch is shown when it is over, so that outputs do not mix.
 */
export async function runInLanes(
  busy: readonly Batch[],
  waiting: readonly Batch[],
  over: (batch: Batch, tally: Tally, milliseconds: number) => void,
): Promise<void> {
  const left = { busy: [...busy], waiting: [...waiting] };
  const output = busy.length + waiting.length === 1 ? 'inherit' : 'pipe';
  let running = 0;
  const runNext = async (first: 'busy' | 'waiting'): Promise<boolean> => {
    const isBusy = left[first].length > 0 ? first === 'busy' : first === 'waiting';
    if (isBusy && running === mostBusy) return false;
    const batch = left[isBusy ? 'busy' : 'waiting'].shift();
    if (batch === undefined) return false;
    const start = performance.now();
    running += Number(isBusy);
    const tally = await runBatch(batch, output);
    running -= Number(isBusy);
    over(batch, tally, performance.now() - start);
    return true;
  };
  const lane = async (first: 'busy' | 'waiting') => {
    while (await runNext(first));
  };
  await Promise.all([lane('busy'), ...Array.from({ length: mostWaiting }, () => lane('waiting'))]);
}

/** Runs one; it is skipped when what it needs cannot be built. */
export async function runBatch({ what, command, build }: Batch, output: 'inherit' | 'pipe'): Promise<Tally> {
  if (command !== undefined) {
    const passed = await succeeds(command, output);
    return { passed: Number(passed), failed: Number(!passed), skipped: 0, failures: passed ? [] : [what] };
  }
  if (build !== undefined && !(await succeeds([build], output))) {
    console.log(`skipped: ${build} failed`);
    return { passed: 0, failed: 0, skipped: 1, failures: [] };
  }
  return runMocha(what, output);
}

async function succeeds([command = '', ...args]: readonly string[], output: 'inherit' | 'pipe'): Promise<boolean> {
  const child = spawn(command, args, { stdio: ['ignore', output, output] });
  const said = hear(child);
  // A command that is not there is closed too.
  child.on('error', () => undefined);
  const code = await new Promise((resolve) => child.on('close', resolve));
  process.stdout.write(said());
  return code === 0;
}

/** Runs files in a process of their own. */
function runMocha(files: string, output: 'inherit' | 'pipe'): Promise<Tally> {
  const reporter = process.stdout.isTTY ? 'spec' : 'dot';
  const mocha = fork('node_modules/mocha/bin/mocha.js', ['--reporter', reporter, files], {
    stdio: ['inherit', output, output, 'ipc'],
    // Control planes are written in Go: there is more memory than there are processors for their many starts.
    env: { GOGC: '400', NODE_COMPILE_CACHE: compiled, ...process.env },
  });
  const said = hear(mocha);
  let tally: Tally | undefined;
  let limit: NodeJS.Timeout | undefined;
  let isStuck = false;
  mocha.on('message', (message) => {
    tally = message as Tally;
    // Mocha ends when nothing is open any more; a test that leaves a socket or a timer would hold it for ever.
    limit = setTimeout(() => {
      isStuck = true;
      mocha.kill();
    }, 3000);
  });
  return new Promise((resolve) => {
    mocha.on('close', (code) => {
      clearTimeout(limit);
      process.stdout.write(said());
      resolve(judge(files, tally, code === 0, isStuck));
    });
  });
}

/** Returns what a process counted. One that ends without its tally, or badly in spite of it, counts as a failure. */
function judge(files: string, tally: Tally | undefined, endedWell: boolean, isStuck: boolean): Tally {
  if (tally !== undefined && (tally.failed > 0 || (endedWell && !isStuck))) return tally;
  const fault = isStuck
    ? 'The tests leave something open, so their process does not end'
    : `The process ended ${tally === undefined ? 'before its tests did' : 'badly after its tests'}`;
  console.log(fault);
  return { passed: 0, skipped: 0, ...tally, failed: 1, failures: [`${files}: ${fault}`] };
}

/** Collects the output of a process on both streams. */
function hear({ stdout, stderr }: ChildProcess): () => string {
  let said = '';
  for (const stream of [stdout, stderr]) stream?.setEncoding('utf8').on('data', (piece) => (said += piece));
  return () => said;
}
