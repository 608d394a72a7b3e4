import { startPeriodicTask } from '../base/periodic-task.ts';
import { measureFiles } from './child-folder.ts';
import { Failed, type MediaLimits } from './tools.ts';

const checkEveryMs = 250;

/**
 * Measures the bytes of a fetch and ends the fetch with a `Failed` when it is too large or too slow. Returns a function that
 * stops the watch. A live source is slow by nature: one byte in `slowSeconds` is enough. A file that begins anew, because its
 * source cannot resume a broken connection, has all of that time again.
 */
export function watchFetch(
  folder: string,
  limits: MediaLimits,
  live: boolean,
  onBytes: (bytes: number) => void,
  end: (reason: Failed) => void,
): () => void {
  const samples: { readonly at: number; readonly bytes: number }[] = [{ at: performance.now(), bytes: 0 }];
  const least = live ? 1 : limits.slowBytes * limits.slowSeconds;
  const look = async () => {
    const bytes = await measureFiles(folder, 'part');
    const now = performance.now();
    onBytes(bytes);
    if (bytes > limits.fileBytes) return end(new Failed('file_too_large', `${bytes} bytes`));
    if (bytes < (samples.at(-1)?.bytes ?? 0)) samples.length = 0;
    samples.push({ at: now, bytes });
    while (samples[1] !== undefined && samples[1].at <= now - limits.slowSeconds * 1000) samples.shift();
    const first = samples[0];
    if (first === undefined || now - first.at < limits.slowSeconds * 1000) return;
    if (bytes - first.bytes < least)
      end(new Failed('too_slow', `${bytes - first.bytes} bytes in ${limits.slowSeconds} s`));
  };
  const watch = startPeriodicTask(look, checkEveryMs);
  return () => void watch.close();
}
