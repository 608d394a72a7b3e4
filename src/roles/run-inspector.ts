import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { readConfig } from '../base/config.ts';
import { type Log, makeLog } from '../base/log.ts';
import { makeMetrics } from '../base/metrics.ts';
import { startProbeServer } from '../base/probe-server.ts';
import { makeShutdown } from '../base/shutdown.ts';
import { inspectUrl } from '../media/produce-file.ts';
import { chooseSandbox } from '../worker/choose-sandbox.ts';
import { findPrograms } from '../worker/find-programs.ts';
import { startInspectorPool } from '../worker/inspector-pool.ts';
import { serveInspector } from '../worker/inspector-server.ts';
import type { Surroundings } from './run-worker.ts';

/** Requests at once for each processor: most of their time they wait for the network. */
const maxConcurrentEach = 4;
/** What leaks in yt-dlp and its libraries goes with the parent. */
const maxRequests = 1000;
const drainSeconds = 20;

const help = `Usage: trawl inspector [--lifeline]

Tells what is known of media URLs, until SIGTERM.
  --lifeline   ends when the standard input does
`;

/** Runs the role `inspector` until SIGTERM; gives the exit code. */
export async function runInspectorRole(args: readonly string[], { env, out, err }: Surroundings): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { lifeline: { type: 'boolean', default: false }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) {
    out(help);
    return 0;
  }
  const config = readConfig(env, (path) => readFileSync(path, 'utf8'), {
    required: ['TRAWL_INSPECTOR_ADDRESS', 'TRAWL_EGRESS_ADDRESS'],
  });
  const log = makeLog({ level: config.logLevel, write: err, now: Date.now });
  const stop = makeShutdown();
  const left = waitToLeave(values.lifeline);
  try {
    const root = join(resolve(config.data), 'work');
    const sandbox = await chooseSandbox(config.sandbox, root, (sentence) =>
      log.warn('no sandbox', { reason: sentence }),
    );
    const inspector = await startInspectorPool({
      ...{ inspectUrl, sandbox, log, maxRequests, inspectSeconds: config.inspectSeconds },
      plugins: config.ytdlpPlugins.filter((folder) => isHere(folder, log)),
      egress: config.egressAddress,
      programs: findPrograms(env.PATH ?? ''),
      root,
      maxConcurrent: maxConcurrentEach * availableParallelism(),
    });
    stop.add('inspector', inspector.close);
    const ready = () => (inspector.isReady() ? [] : ['inspector']);
    const probe = await startProbeServer({ port: config.probePort, host: config.host, metrics: makeMetrics(), ready });
    stop.add('probe', probe.close);
    const at = config.inspectorAddress;
    // Others find it by a name that may stand for several; it listens at that port of its own.
    const place = 'path' in at ? at : { host: config.host, port: at.port };
    const inspection = await serveInspector(inspector, place);
    let drain = drainSeconds;
    stop.add('inspection', () => inspection.close(drain));
    log.info('inspector listens', { sandbox });
    drain = (await left) === 'lifeline' ? 0 : drain;
    return 0;
  } finally {
    await stop.run();
    process.stdin.destroy();
  }
}

/** Where workers run in a cluster, their image alone may have the folders of plugins. */
function isHere(folder: string, log: Log): boolean {
  const isHere = existsSync(folder);
  if (!isHere) log.warn('a folder of plugins is not here: URLs are looked at without it', { folder });
  return isHere;
}

/** Whoever holds the other end of the lifeline starts us and says when to leave: Ctrl-C in its terminal is not for us then. */
function waitToLeave(hasLifeline: boolean): Promise<'signal' | 'lifeline'> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve('signal'));
    process.on('SIGINT', () => {
      if (!hasLifeline) resolve('signal');
    });
    if (hasLifeline) process.stdin.once('close', () => resolve('lifeline')).resume();
  });
}
