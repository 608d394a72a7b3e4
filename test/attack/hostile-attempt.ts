import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { inspectUrl } from '../../src/media/inspect-url.ts';
import { produce } from '../../src/media/produce-file.ts';
import type { InspectionResult } from '../../src/model/inspection-result.ts';
import type { Outcome } from '../../src/model/outcome.ts';
import type { ProgramPaths } from '../../src/worker/find-programs.ts';
import { openGatewayClient } from '../../src/worker/gateway-client.ts';
import { InspectorBusy } from '../../src/worker/inspection-slots.ts';
import { startInspectorPool } from '../../src/worker/inspector-pool.ts';
import { runAttempt } from '../../src/worker/run-attempt.ts';
import type { Sandbox } from '../../src/worker/sandbox-command.ts';
import { startStageClock } from '../../src/worker/stage-clock.ts';
import { startGateway, token } from '../support/gateway.ts';
import { openToOthers } from '../support/other-user.ts';
import { startProxy } from '../support/proxy.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { programs as ownPrograms } from '../support/worker.ts';
import { type HostileSource, hostilePlugin } from './hostile-source.ts';

interface Attack {
  readonly source: HostileSource;
  /** Page of the source. */
  readonly url: string;
  readonly sandbox: Sandbox;
  /** With `landlock-user`: those that every user can run. */
  readonly programs?: ProgramPaths;
  /** Of the whole attempt, or of reading the page. */
  readonly seconds?: number;
  /** Cgroup below which children get one of their own. */
  readonly cgroups?: string;
  /** Of all children together. */
  readonly memoryBytes?: number;
}

/** End of an attack: what the trusted side answered, its log, and what it left in its work folder. */
interface Attacked<T> {
  readonly outcome: T;
  readonly log: string;
  readonly left: readonly string[];
}

/** Runs one attempt, as a worker does, whose yt-dlp is taken over. */
export async function attackWorker(attack: Attack): Promise<Attacked<Outcome | null>> {
  const { source, url, sandbox, seconds = 60, cgroups = null, memoryBytes = 2 ** 31, programs = ownPrograms } = attack;
  const { folder, remove } = aFolder();
  const { log, lines } = aLog();
  const proxy = await startProxy((host) => host === source.host);
  const order = { endpoint: 'video', args: { query: url } } as const;
  const gateway = await startGateway({ folder, order, limits: { seconds } });
  const { signal } = new AbortController();
  const root = join(folder, 'work');
  const close = sandbox === 'landlock-user' ? openToOthers(root) : () => undefined;
  try {
    const outcome = await runAttempt({
      ...{ gateway: openGatewayClient(gateway.address, () => token, 5, signal), media: { produce, inspectUrl } },
      ...{ programs, root, sandbox, plugins: [hostilePlugin], egress: addressOf(proxy.url), log, signal },
      ...{ cgroups, memoryBytes, slowBytes: 1, slowSeconds: 60, patienceSeconds: 5 },
      stages: startStageClock(),
    });
    return { outcome, log: lines.join(''), left: readdirSync(root) };
  } finally {
    await Promise.all([gateway.stop(), proxy.stop()]);
    close();
    remove();
  }
}

/** Inspects one URL, as for synchronous metadata, whose yt-dlp is taken over; `busy` stands for an answer of 503. */
export async function attackInspector(attack: Attack): Promise<Attacked<InspectionResult | 'busy'>> {
  const { source, url, sandbox, seconds = 20, cgroups = null, programs = ownPrograms } = attack;
  const { folder, remove } = aFolder();
  const { log, lines } = aLog();
  const proxy = await startProxy((host) => host === source.host);
  const root = join(folder, 'work');
  const close = sandbox === 'landlock-user' ? openToOthers(root) : () => undefined;
  const inspector = await startInspectorPool({
    ...{ inspectUrl, programs, egress: addressOf(proxy.url), root, cgroups, sandbox, plugins: [hostilePlugin], log },
    ...{ inspectSeconds: seconds, maxConcurrent: 4, maxRequests: 100 },
  });
  try {
    const outcome = await inspector.inspect(url, 'account', new AbortController().signal).catch((error: unknown) => {
      if (error instanceof InspectorBusy) return 'busy' as const;
      throw error;
    });
    const left = readdirSync(root).flatMap((name) => readdirSync(join(root, name, 'requests')));
    return { outcome, log: lines.join(''), left };
  } finally {
    await inspector.close();
    await proxy.stop();
    close();
    remove();
  }
}

function addressOf(url: string): { host: string; port: number } {
  return { host: '127.0.0.1', port: Number(new URL(url).port) };
}
