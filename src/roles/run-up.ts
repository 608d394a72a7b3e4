import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { checkMachine } from '../admin/check-machine.ts';
import type { Finding } from '../admin/doctor-finding.ts';
import type { Terminal } from '../admin/terminal.ts';
import type { Config } from '../base/config.ts';
import { refuse } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { makeSeal } from '../base/seal.ts';
import type { Shutdown } from '../base/shutdown.ts';
import { projectPython } from '../media/yt-dlp.ts';
import type { Inspector } from '../model/inspection-result.ts';
import { buildController, type ControllerParts } from './build-controller.ts';
import { childEnv, ownCommand } from './child-env.ts';
import { keepChild } from './children.ts';
import { makeFileLinks } from './file-links.ts';
import { askInspector } from './inspector-client.ts';
import { openKubernetesWorkers } from './kubernetes-workers.ts';
import { openObjects } from './open-objects.ts';
import { openRecord } from './open-record.ts';
import { openProcessWorkers } from './process-workers.ts';
import { openReadiness, type Readiness } from './readiness.ts';
import { type RunningRole, runRole } from './run-role.ts';
import { linesToTry, makeSampleAccount } from './sample-account.ts';
import { serveApi } from './serve-api.ts';
import { isListening, listenAt, listenOn } from './socket.ts';
import { openStateFolder } from './state-folder.ts';
import { showStatusLine } from './status-line.ts';
import { showYtDlpVersion } from './yt-dlp-version.ts';

const help = `Usage: trawl up

Runs trawl on this machine: redis-server, the public API, controller, workers, inspector and egress. Ctrl-C stops it; the next start goes on where it was.
All settings are environment variables: docs/config.md lists them.
`;

/** Runs everything on one machine until SIGTERM or Ctrl-C; gives the exit code. */
export function runUp(args: readonly string[], terminal: Terminal): Promise<number> {
  return runRole({ name: 'up', help, start }, args, terminal);
}

async function start(running: RunningRole): Promise<void> {
  const { config, log, metrics, stop, terminal } = running;
  const tell = (finding: Finding) => terminal.err(`${finding.text}\n`);
  await refuseUnfitMachine(config, tell);
  const home = await openStateFolder(config.data, config.secret);
  stop.add('data folder', home.release);
  const readiness = await openReadiness(running, ['record', 'egress', 'inspector', 'controller', 'api']);
  const store = await openRecord(running, tell);
  readiness.set('record', store.connection.ready);
  // Nobody works yet: what lies there was left by workers that were killed with everything else.
  await rm(join(home.path, 'work'), { recursive: true, force: true });
  if (config.runner === 'process') showYtDlpVersion(projectPython, metrics, log);
  const seal = makeSeal({ secret: home.secret, old: config.secretOld });
  const objects = await openObjects(config, { folder: join(home.path, 'objects'), seal, now: store.clock.now });
  const env = childEnv(terminal.env, home.path);
  const inspector = startReaders({ home: home.path, env, readiness, log }, stop);
  const parts = { config, store, seal, objects, inspector, log, metrics };
  let publicUrl = config.publicUrl;
  const linkOf = makeFileLinks(parts, () => publicUrl);
  const controller = await buildController(
    { ...parts, ...placesOf(parts, home.path, env, terminal.env), linkOf },
    stop,
  );
  readiness.set('controller', () => controller.isLeading());
  const api = await serveApi(parts, stop);
  publicUrl = api.publicUrl;
  readiness.set('api', () => true);
  stop.add('readiness', () => {
    readiness.set('api', () => false);
    controller.pause();
  });
  terminal.out(`trawl answers at ${api.publicUrl}\n`);
  await makeSampleAccount(store, seal, home.path, (key) => terminal.out(introduce(api.publicUrl, key)));
  stop.add('status', showStatusLine(metrics, process.stdout).close);
}

type Own = Parameters<typeof openProcessWorkers>[0]['env'];

/** Where workers run, where their gateway listens, and the way out: on this machine all of it is sockets. */
function placesOf(
  { config, store, seal, metrics, log }: Pick<ControllerParts, 'config' | 'store' | 'seal' | 'metrics' | 'log'>,
  home: string,
  own: Own,
  env: Terminal['env'],
): Pick<ControllerParts, 'openWorkers' | 'listen' | 'egress'> {
  const egress = join(home, 'egress.sock');
  const gateway = join(home, 'gateway.sock');
  const inCluster = config.runner === 'kubernetes';
  const told = { ...own, TRAWL_GATEWAY_ADDRESS: `unix:${gateway}`, TRAWL_EGRESS_ADDRESS: `unix:${egress}` };
  return {
    openWorkers: inCluster
      ? openKubernetesWorkers({ config, env, now: store.clock.now, metrics, log })
      : openProcessWorkers({ command: ownCommand, env: told, seal, log }),
    listen: (server) => (inCluster ? listenOn(server, config.host, config.gatewayPort) : listenAt(server, gateway)),
    egress: { path: egress },
  };
}

/** The doctor's word on this machine: a problem refuses the start, everything else that is not well is told. */
async function refuseUnfitMachine(config: Config, tell: (finding: Finding) => void): Promise<void> {
  const findings = await checkMachine(config);
  const problems = findings.filter(({ level }) => level === 'problem');
  if (problems.length > 0) throw refuse('unavailable', problems.map(({ text }) => text).join('\n'));
  for (const finding of findings) if (finding.level === 'note') tell(finding);
}

interface Readers {
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  readonly readiness: Readiness;
  readonly log: Log;
}

/** Starts what reaches the outside beside the workers: egress, and the inspector, which warms up meanwhile. */
function startReaders({ home, env, readiness, log }: Readers, stop: Shutdown): Inspector {
  const egressSocket = join(home, 'egress.sock');
  const inspectorSocket = join(home, 'inspector.sock');
  const egress = keepChild({
    name: 'egress',
    command: [...ownCommand, 'egress', '--lifeline', '--at', egressSocket],
    env,
    log,
  });
  stop.add('egress', egress.stop, 6);
  readiness.set('egress', () => isListening({ path: egressSocket }));
  const inspecting = keepChild({
    name: 'inspector',
    command: [...ownCommand, 'inspector', '--lifeline'],
    env: { ...env, TRAWL_INSPECTOR_ADDRESS: `unix:${inspectorSocket}`, TRAWL_EGRESS_ADDRESS: `unix:${egressSocket}` },
    log,
  });
  stop.add('inspector', inspecting.stop, 6);
  readiness.set('inspector', () => isListening({ path: inspectorSocket }));
  return askInspector({ path: inspectorSocket });
}

function introduce(url: string, key: string): string {
  const lines = linesToTry(url, key).map((line) => `  ${line}\n`);
  return `A sample account has 100 credits and this key, which is shown only now:
  ${key}
Paste these lines into another terminal: they show what the account has, ask for a film, wait for it and fetch it as film.mp4.
Any other URL may stand in place of the film's. The film costs one credit, as the first line then shows.
${lines.join('')}`;
}
