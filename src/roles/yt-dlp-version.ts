import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { releaseOf, ytDlpVersionArgs } from '../media/yt-dlp.ts';

const maxMs = 20_000;

type VersionMetrics = Pick<Metrics, 'yt_dlp_info' | 'yt_dlp_released_seconds'>;

/** Sets the metrics of yt-dlp later: the start does not wait for Python. */
export function showYtDlpVersion(python: string, metrics: VersionMetrics, log: Log): void {
  promisify(execFile)(python, [...ytDlpVersionArgs], { timeout: maxMs }).then(
    ({ stdout }) => {
      const version = stdout.trim();
      metrics.yt_dlp_info.set({ version }, 1);
      const released = releaseOf(version);
      if (released !== undefined) metrics.yt_dlp_released_seconds.set(released);
    },
    (error) => log.warn('the version of yt-dlp could not be read', { error }),
  );
}
