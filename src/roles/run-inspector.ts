import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import type { ConfigRule } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import { machineMemoryBytes } from '../base/machine-memory.ts';
import { inspectionsAtOnce } from '../base/resource-limits.ts';
import { usesTls } from '../base/server-address.ts';
import { inspectUrl } from '../media/inspect-url.ts';
import { enterIsolation, isPod } from '../worker/enter-isolation.ts';
import { findPrograms } from '../worker/find-programs.ts';
import { startInspectorPool } from '../worker/inspector-pool.ts';
import { serveInspector } from '../worker/inspector-server.ts';
import { openReadiness } from './readiness.ts';
import { makeRole, type RunningRole } from './run-role.ts';
import { certificateFilesOf } from './socket.ts';
import { showYtDlpVersion } from './yt-dlp-version.ts';

/** Then the parent process is replaced, because yt-dlp and its libraries leak. */
const maxRequests = 1000;
/** As long as the API waits for its calls. */
const drainSeconds = 30;
const required = ['TRAWL_INSPECTOR_ADDRESS', 'TRAWL_EGRESS_ADDRESS'] as const;

const rules: readonly ConfigRule[] = [
  {
    broken: ({ inspectorAddress: address, tlsCertFile }) =>
      Boolean(address && 'host' in address && usesTls(address) !== Boolean(tlsCertFile)),
    sentence:
      'TRAWL_INSPECTOR_ADDRESS must begin with https:// if TRAWL_TLS_CERT_FILE is set, and with http:// if not.',
  },
];

const help = `Usage: trawl inspector [--lifeline]

Tells what is known of media URLs, until SIGTERM.
  --lifeline   ends when the standard input does
`;

const options = { lifeline: { type: 'boolean' } } as const;
const needs = { required, rules };

export const runCommand = makeRole({ name: 'inspector', help, options, needs, logsTo: 'stderr', start });

async function start(running: RunningRole<(typeof required)[number]>): Promise<void> {
  const { config, log, metrics, stop, terminal, isOrphaned } = running;
  const programs = findPrograms(terminal.env.PATH ?? '');
  const root = join(resolve(config.data), 'work');
  const isolation = { config, root, python: programs.python, isPod: isPod(terminal.env), log };
  const sandbox = await enterIsolation(isolation);
  const inspector = await startInspectorPool({
    ...{ inspectUrl, sandbox, log, maxRequests, programs, root, inspectSeconds: config.inspectSeconds },
    cgroups: config.cgroup === 'off' ? null : config.cgroup,
    plugins: config.ytdlpPlugins.filter((folder) => hasFolder(folder, log)),
    egress: config.egressAddress,
    maxConcurrent: inspectionsAtOnce(availableParallelism(), machineMemoryBytes()),
  });
  stop.add('inspector', inspector.close);
  const readiness = await openReadiness(running, ['inspector']);
  const { inspectorAddress: address } = config;
  // Clients reach it by a name that may stand for several inspectors; each listens at that port of its own host.
  const at = 'path' in address ? address : { host: config.host, port: address.port };
  const files = 'path' in address ? null : certificateFilesOf(config, metrics);
  const server = await serveInspector(inspector, at, files && { files, log });
  stop.add('inspection', () => server.close(isOrphaned() ? 0 : drainSeconds));
  readiness.set('inspector', inspector.isReady);
  log.info('inspector listens');
  showYtDlpVersion(programs.python, metrics, log);
}

/** In a cluster a plugin folder may be in the image of the workers alone. */
function hasFolder(folder: string, log: Log): boolean {
  if (existsSync(folder)) return true;
  log.warn('a plugin folder is missing here: URLs are inspected without it', { folder });
  return false;
}
