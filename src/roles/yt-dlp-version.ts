import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { ytDlpVersionArgs } from '../media/yt-dlp.ts';

const maxMs = 20_000;

/** Sets `yt_dlp_info` later: the start does not wait for Python. */
export function showYtDlpVersion(python: string, { yt_dlp_info }: Pick<Metrics, 'yt_dlp_info'>, log: Log): void {
  promisify(execFile)(python, [...ytDlpVersionArgs], { timeout: maxMs }).then(
    ({ stdout }) => yt_dlp_info.set({ version: stdout.trim() }, 1),
    (error) => log.warn('the version of yt-dlp could not be read', { error }),
  );
}
