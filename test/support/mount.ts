import { spawnSync } from 'node:child_process';
import { aFolder } from './redis.ts';

/** Returns the reason why nothing can be mounted here; `null` when it can. */
export function whyNoMounts(): string | null {
  const { folder, remove } = aFolder();
  try {
    mountSmall(folder, 2 ** 20);
    unmount(folder);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    remove();
  }
}

/** Lays a small disk of its own over a folder. */
export function mountSmall(folder: string, bytes: number): void {
  run('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', folder]);
}

/** Makes a folder read-only, for root too. */
export function mountReadOnly(folder: string): void {
  run('mount', ['--bind', folder, folder]);
  run('mount', ['-o', 'remount,bind,ro', folder]);
}

/** Takes away what was laid over a folder last, also while files there are open. */
export function unmount(folder: string): void {
  run('umount', ['--lazy', folder]);
}

function run(command: string, args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr.trim()}`);
}
