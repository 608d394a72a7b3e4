import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

// Every run has a temporary folder of its own: what a test forgets there is seen, whoever else runs tests on the machine.
const folder = mkdtempSync(join(realpathSync(tmpdir()), 'trawl-test-'));
process.env.TMPDIR = folder;
process.once('SIGTERM', () => process.exit(143));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const mostLooks = 40;

/** After all tests of a run: fails it when they left a process or a temporary file behind. */
export const mochaHooks = {
  async afterAll(this: Mocha.Context): Promise<void> {
    this.timeout(0);
    // A process that was told to end may need a moment. Each look reads all of /proc, so there are few.
    for (let look = 1; leftBehind().length > 0; look++) {
      if (look === mostLooks) throw new Error(`The tests left behind: ${leftBehind().join(', ')}`);
      await pause(100);
    }
  },
};

const failures: string[] = [];

/** Before all tests of a run: begins to collect what fails. */
export function mochaGlobalSetup(this: Mocha.Runner): void {
  this.on('fail', (test: Mocha.Runnable, fault: Error) => {
    failures.push(`${test.fullTitle()}: ${fault.message ?? fault}`);
  });
}

/** Tells test/run.ts, when that has started this run, how many tests passed, failed and were skipped, and which failed. */
export function mochaGlobalTeardown(this: Mocha.Runner): void {
  const { passes, failures: failed, pending } = this.stats ?? {};
  process.send?.({ passed: passes, failed, skipped: pending, failures });
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
