import { classifyFfmpeg } from './classify-failure.ts';
import { mediaEnv } from './ffmpeg-arguments.ts';
import { damage } from './prove-file.ts';
import { Failed, type MediaTools } from './tools.ts';

/** Runs ffmpeg; throws a `Failed` when it fails or complains of damage. */
export async function runFfmpeg(
  args: readonly string[],
  tools: MediaTools,
  signal: AbortSignal,
  onLine: (text: string) => void = () => {},
): Promise<void> {
  const options = { folder: tools.folder, env: mediaEnv(tools.folder), onLine, signal };
  const ended = await tools.run(tools.ffmpeg, args, options).ended;
  signal.throwIfAborted();
  if (ended.signal === 'SIGXFSZ') throw new Failed('file_too_large', ended.stderr);
  if (ended.code !== 0) throw new Failed(classifyFfmpeg(ended.stderr), ended.stderr);
  if (damage.test(ended.stderr)) throw new Failed('file_damaged', ended.stderr);
}
