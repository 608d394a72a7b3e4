import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { ChildLimits } from './child-limits.ts';
import { ownUser, type Sandbox, sandboxCommand } from './sandbox-command.ts';

export type SandboxMode = 'auto' | 'required' | 'off';

const trialMs = 5000;
const trialLimits: ChildLimits = {
  fileBytes: 2 ** 20,
  folderBytes: 2 ** 20,
  memoryBytes: 2 ** 28,
  cpuSeconds: 5,
  processes: 64,
};

/**
 * Returns the strongest sandbox that works on this machine, tried around the folder where children will work. With `none` left
 * it warns, or throws when a sandbox is required.
 */
export async function chooseSandbox(
  mode: SandboxMode,
  folder: string,
  warn: (sentence: string) => void,
): Promise<Sandbox> {
  if (mode === 'off') return 'none';
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const reasons: string[] = [];
  for (const sandbox of candidates()) {
    const reason = await trySandbox(sandbox, folder);
    if (reason === null) return sandbox;
    reasons.push(reason);
  }
  const why = `bubblewrap does not work here (${reasons.join('; ')})`;
  if (mode === 'required') throw new Error(`TRAWL_SANDBOX is required, but ${why}.`);
  warn(`${why}: children run without a sandbox`);
  return 'none';
}

function candidates(): Sandbox[] {
  return process.getuid?.() === 0 ? ['user', 'namespace'] : ['namespace'];
}

async function trySandbox(sandbox: Sandbox, folder: string): Promise<string | null> {
  const inside = {
    sandbox,
    folder,
    readable: [],
    route: null,
    limits: trialLimits,
    user: ownUser(),
    python: 'python3',
  };
  const [program = '', ...args] = sandboxCommand(['true'], inside);
  try {
    await promisify(execFile)(program, args, { timeout: trialMs });
    return null;
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error && String(error.stderr).trim();
    return said || (error instanceof Error ? error.message : String(error));
  }
}
