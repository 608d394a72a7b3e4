import { join } from 'node:path';
import { inspectUrl } from '../../src/media/inspect-url.ts';
import { type InspectorPool, startInspectorPool } from '../../src/worker/inspector-pool.ts';
import type { Sandbox } from '../../src/worker/sandbox-command.ts';
import { openToOthers, type programsOfOthers } from '../support/other-user.ts';
import { startProxy } from '../support/proxy.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { programs } from '../support/worker.ts';
import { type HostileSource, hostilePlugin } from './hostile-source.ts';

/** An inspector that runs what a hostile source says. */
interface HostilePool {
  readonly folder: string;
  readonly inspect: (url: string, account?: string, signal?: AbortSignal) => ReturnType<InspectorPool['inspect']>;
  readonly close: () => Promise<void>;
}

/** A page of a hostile source that has a film. */
export const film = `info = {'url': source + '/film.mp4', 'ext': 'mp4', 'duration': 1, 'height': 1, 'vcodec': 'h264'}`;
/** Inspections at once. */
export const slots = 4;

/** Starts an inspector whose egress leads to the source alone; programs of others are needed where its children are other users. */
export async function startHostilePool(
  source: HostileSource,
  sandbox: Sandbox,
  programsOf: ReturnType<typeof programsOfOthers> = () => programs,
): Promise<HostilePool> {
  source.reports.length = 0;
  const { folder, remove } = aFolder();
  const root = join(folder, 'work');
  const proxy = await startProxy((host) => host === source.host);
  const closeToOthers = sandbox === 'landlock-user' ? openToOthers(root) : () => undefined;
  const pool = await startInspectorPool({
    ...{ inspectUrl, programs: programsOf(), root, cgroups: null, sandbox },
    ...{ egress: { host: '127.0.0.1', port: Number(new URL(proxy.url).port) }, plugins: [hostilePlugin] },
    ...{ inspectSeconds: 60, maxConcurrent: slots, maxRequests: 100, log: aLog().log },
  });
  return {
    folder,
    inspect: (url, account = 'account', signal = new AbortController().signal) => pool.inspect(url, account, signal),
    async close() {
      await pool.close();
      await proxy.stop();
      closeToOthers();
      remove();
    },
  };
}
