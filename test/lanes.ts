import { type ChildProcess, fork, spawn } from 'node:child_process';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** How many tests passed, failed and were skipped. */
export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

/** Files that run in one process, after what they need has been built. */
export interface Batch {
  readonly group: string;
  readonly files: string;
  readonly build?: string;
}

/** Where `./trawl` keeps compiled code too. */
const compiled = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'trawl', 'compile');

/** Runs batches, so many at a time, in their order; what each says is shown when it is over, so that they do not mix. */
export async function runInLanes(
  batches: readonly Batch[],
  lanes: number,
  over: (batch: Batch, tally: Tally, milliseconds: number) => void,
): Promise<void> {
  const waiting = [...batches];
  const lane = async () => {
    for (let batch = waiting.shift(); batch !== undefined; batch = waiting.shift()) {
      const start = performance.now();
      const tally = await runBatch(batch, batches.length === 1 ? 'inherit' : 'pipe');
      over(batch, tally, performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** Runs one; it is skipped when what it needs cannot be built. */
export async function runBatch({ files, build }: Batch, output: 'inherit' | 'pipe'): Promise<Tally> {
  if (build !== undefined && !(await succeeds(build, output))) {
    console.log(`skipped: ${build} failed`);
    return { passed: 0, failed: 0, skipped: 1 };
  }
  return runMocha(files, output);
}

async function succeeds(command: string, output: 'inherit' | 'pipe'): Promise<boolean> {
  const child = spawn(command, { stdio: ['ignore', output, output] });
  const said = hear(child);
  // A command that is not there is closed too.
  child.on('error', () => undefined);
  const code = await new Promise((resolve) => child.on('close', resolve));
  process.stdout.write(said());
  return code === 0;
}

/** Runs files in a process of their own. One that ends without its tally, or badly in spite of it, counts as a failure. */
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
      console.log('The tests leave something open, so their process does not end');
      isStuck = true;
      mocha.kill();
    }, 3000);
  });
  return new Promise((resolve) => {
    mocha.on('close', (code) => {
      clearTimeout(limit);
      process.stdout.write(said());
      if (!tally) console.log('The process ended before its tests did');
      const endedWell = code === 0 && !isStuck;
      resolve(tally ? { ...tally, failed: tally.failed || Number(!endedWell) } : { passed: 0, failed: 1, skipped: 0 });
    });
  });
}

/** What a process says on both streams from now on. */
function hear({ stdout, stderr }: ChildProcess): () => string {
  let said = '';
  for (const stream of [stdout, stderr]) stream?.setEncoding('utf8').on('data', (piece) => (said += piece));
  return () => said;
}
