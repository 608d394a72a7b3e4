import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';
import { config } from 'chai';
import fc from 'fast-check';
import type { RunMessage } from '../lanes.ts';
import { seed } from './seed.ts';

// Every run has a temporary folder of its own: what a test forgets there is seen, whoever else runs tests on the machine.
const folder = mkdtempSync(join(realpathSync(tmpdir()), 'trawl-test-'));
process.env.TMPDIR = folder;
process.once('SIGTERM', () => process.exit(143));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
/**
 * Rejections that nobody handled, with the test or hook that ran. Mocha swallows them, and each would end a process of trawl. They fail the run at its end:
 * thrown at once, they would end the run.
 */
const unhandled = new Map<Promise<unknown>, string>();
let running = '';
process.on('unhandledRejection', (error, promise) => unhandled.set(promise, `${running}: ${inspect(error)}`));

fc.configureGlobal({ seed });

// With the usual 40 characters, most messages of a list tell only its length.
config.truncateThreshold = 400;

/** A busy machine may take seconds until a process has ended. */
const maxEndMs = 15_000;

/** After all tests of a run: fails it when they left a process or a temporary file behind, or a rejection that nobody handled. */
export const mochaHooks = {
  async afterAll(this: Mocha.Context): Promise<void> {
    this.timeout(0);
    if (unhandled.size > 0) throw new Error(`Nobody handled a rejection in ${[...unhandled.values()].join('\n')}`);
    // A process that was told to end may need a moment. Each look reads all of /proc, so there are few.
    for (const end = performance.now() + maxEndMs; leftBehind().length > 0; await pause(100)) {
      if (performance.now() > end) throw new Error(`The tests left behind: ${leftBehind().join(', ')}`);
    }
  },
};

/** Tells test/run.ts, when that has started this run. */
function tell(message: RunMessage): void {
  process.send?.(message);
}

/** Before all tests of a run: begins to tell what runs and what fails, so that the end of this process loses neither. */
export function mochaGlobalSetup(this: Mocha.Runner): void {
  for (const begin of ['hook', 'test'] as const) {
    this.on(begin, (runnable: Mocha.Runnable) => {
      running = nameOf(runnable);
      tell({ at: running });
    });
  }
  this.on('fail', (runnable: Mocha.Runnable, fault: Error) => {
    tell({ failure: `${nameOf(runnable)}: ${fault.message ?? fault}` });
  });
}

/**
 * After all tests of a run: tells how many passed, failed and were skipped, and how many a hook that failed kept from running.
 * Prints the seed when one failed.
 */
export function mochaGlobalTeardown(this: Mocha.Runner): void {
  const { passes: passed = 0, failures: failed = 0, pending: skipped = 0, tests = 0 } = this.stats ?? {};
  tell({ passed, failed, skipped, unrun: this.total - tests });
  if (failed > 0) console.error(`SEED=${seed} draws the same in another run.`);
}

/** File and title of a test or a hook. */
function nameOf(runnable: Mocha.Runnable): string {
  const file = runnable.file ?? runnable.parent?.file ?? runnable.parent?.tests[0]?.file;
  return [...(file === undefined ? [] : [relative(process.cwd(), file)]), runnable.fullTitle()].join(': ');
}

function leftBehind(): string[] {
  const files = readdirSync(folder).map((name) => `file ${name}`);
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
  return [...files, ...pids.flatMap(describeOurs)];
}

/** The command line of a process, if it comes from this run: our child, or one that inherited our temporary folder. */
function describeOurs(pid: string): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z') return [];
    const ours = Number(parent) === process.pid || readFileSync(`/proc/${pid}/environ`, 'utf8').includes(folder);
    return ours
      ? [`process ${pid} (${readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()})`]
      : [];
  } catch {
    // The process has ended meanwhile or belongs to another user: neither is of this run.
    return [];
  }
}
