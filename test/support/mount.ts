import { spawnSync } from 'node:child_process';

/** Why nothing can be mounted here; `null` when it can. */
export function whyNoMounts(folder: string): string | null {
  const tried = spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', folder], { encoding: 'utf8' });
  if (tried.error || tried.status !== 0) return tried.error?.message ?? tried.stderr.trim();
  unmount(folder);
  return null;
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
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr}`);
}
