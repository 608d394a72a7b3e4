import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Asks the kernel for its version of Landlock; 444 is `landlock_create_ruleset` on every architecture. */
const question = 'import ctypes; print(ctypes.CDLL(None).syscall(444, None, 0, 1))';
/** Only ends a hang: a busy machine must not look like one without Landlock. */
const limitMs = 60_000;

/** Returns the version of Landlock that the kernel enforces, 0 where it has none or Python cannot be run. */
export async function readLandlockVersion(python: string): Promise<number> {
  try {
    const { stdout } = await promisify(execFile)(python, ['-I', '-S', '-c', question], { timeout: limitMs });
    return Math.max(0, Number.parseInt(stdout, 10) || 0);
  } catch {
    // Without an answer the weakest kernel is assumed.
    return 0;
  }
}
