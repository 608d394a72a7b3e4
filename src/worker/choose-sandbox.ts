import { chmod, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readLandlockVersion } from '../base/landlock-version.ts';
import { makeFolder } from '../base/make-folder.ts';
import { spawnChild } from '../media/spawn-child.ts';
import { isolationOf } from '../model/isolation.ts';
import type { ChildLimits } from './child-limits.ts';
import { hasNamespaces, ownUser, programFolders, type Sandbox, sandboxCommand } from './sandbox-command.ts';
import { endingOf } from './sandbox-ending.ts';
import { laySeccompFilter } from './seccomp-filter.ts';
import { findChildUsers } from './user-id-ranges.ts';

export type SandboxMode = 'auto' | 'required' | 'off';

/** Only ends hangs: a trial takes milliseconds, and seconds on a machine that is busy. */
const maxTrialMs = 60_000;
const trialLimits: ChildLimits = {
  fileBytes: 2 ** 20,
  folderBytes: 2 ** 20,
  memoryBytes: 2 ** 28,
  cpuSeconds: 5,
  processes: 64,
};

/**
 * Returns the strongest sandbox that works on this machine, tried around the folder where children will work. It warns where
 * bubblewrap does not work, and throws where that is required or nothing else keeps children from what trawl can read. It throws
 * too where a trial does not end in time, because a busy machine is no reason for a weaker sandbox.
 */
export async function chooseSandbox(
  mode: SandboxMode,
  folder: string,
  python: string,
  warn: (sentence: string) => void,
  trialMs = maxTrialMs,
): Promise<Sandbox> {
  if (mode === 'off') return 'none';
  await makeFolder(folder, 0o700);
  const reasons: string[] = [];
  const candidates = hasOtherUsers() ? (['user', 'namespace'] as const) : (['namespace'] as const);
  for (const sandbox of candidates) {
    const reason = await trySandbox(sandbox, folder, ['true'], 'python3', trialMs);
    if (reason === null) return sandbox;
    reasons.push(reason);
  }
  const why = `bubblewrap does not work here (${reasons.join('; ')})`;
  if (mode === 'required') throw new Error(`TRAWL_SANDBOX is required, but ${why}.`);
  if (hasOtherUsers()) {
    // The way to the folders of children, whose names are secret; what else lies beside them is closed by itself.
    for (const path of [dirname(folder), folder]) await chmod(path, 0o711);
    const reason = await trySandbox('landlock-user', folder, [python, '-I', '-S', '-c', 'pass'], python, trialMs);
    if (reason !== null) throw new Error(refusal(`${why}, and no other user can run its children (${reason})`));
    warn(`${why}: children have a user id of their own, and Landlock where the kernel does`);
    return 'landlock-user';
  }
  if ((await readLandlockVersion(python)) === 0) throw new Error(refusal(`${why}, and the kernel has no Landlock`));
  warn(`${why}: Landlock alone isolates children`);
  return 'none';
}

function refusal(why: string): string {
  return `${why}: with TRAWL_SANDBOX=off trawl starts all the same, and a child of yt-dlp that is taken over can then read the record.`;
}

/** Returns true as root, unless a user namespace knows no other id. */
function hasOtherUsers(): boolean {
  return process.getuid?.() === 0 && findChildUsers().attempts.first > 0;
}

/** Runs a command in a sandbox; returns the reason for which that does not work, `null` when it does. */
async function trySandbox(
  sandbox: Sandbox,
  folder: string,
  command: readonly string[],
  python: string,
  trialMs: number,
): Promise<string | null> {
  const file = join(folder, `seccomp-${process.pid}`);
  // A process with the same id may have been killed within its trial.
  await rm(file, { force: true });
  try {
    const inside = {
      sandbox,
      folder,
      readable: command[0] === python ? programFolders([python]) : [],
      route: null,
      limits: trialLimits,
      cgroup: null,
      filter: await laySeccompFilter(file, hasNamespaces(sandbox)),
      user: ownUser(),
      python,
    };
    const [program = '', ...args] = sandboxCommand(command, inside);
    const options = { folder, env: { PATH: process.env.PATH ?? '' }, signal: AbortSignal.timeout(trialMs) };
    const { code, signal, stderr } = await spawnChild(program, args, options, endingOf(sandbox)).ended;
    if (code === 0) return null;
    if (options.signal.aborted) {
      const late = `A trial of the sandbox ${isolationOf(sandbox, 0, false)} did not end within ${trialMs / 1000} s`;
      throw new Error(
        `${late}; trawl chooses no weaker one because of that: start it again when the machine is less busy.`,
      );
    }
    return stderr.trim() || `${program} ended with ${signal ?? code}`;
  } finally {
    await rm(file, { force: true });
  }
}
