import { statfsSync } from 'node:fs';
import { lstat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { checkMachine } from '../admin/check-machine.ts';
import type { Finding } from '../admin/doctor-finding.ts';
import type { ServedUrls } from '../admin/served-urls.ts';
import type { Config } from '../base/config.ts';
import { refuse } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { makeFolder } from '../base/make-folder.ts';
import { isListening } from '../base/reach-server.ts';
import type { Seal } from '../base/seal.ts';
import type { SocketAddress } from '../base/server-address.ts';
import type { Shutdown } from '../base/shutdown.ts';
import type { Terminal } from '../base/terminal.ts';
import { makeToken, readToken } from '../controller/attempt-token.ts';
import { removeNames } from '../media/child-folder.ts';
import { projectPython } from '../media/yt-dlp.ts';
import { signInUrl } from '../model/person.ts';
import { openObjects } from '../objects/open-objects.ts';
import { openProcessRunner } from '../runners/process-runner.ts';
import type { AttemptId } from '../runners/runner.ts';
import { chooseSandbox, type SandboxMode } from '../worker/choose-sandbox.ts';
import { findExposed, findPrograms } from '../worker/find-programs.ts';
import { endStuckSandboxes } from '../worker/orphan-cleaner.ts';
import { hasNamespaces, hasOwnUser } from '../worker/sandbox-command.ts';
import { buildController, type OpenWorkers } from './build-controller.ts';
import { childEnv, keepChild, ownCommand } from './children.ts';
import { addEgressCounts } from './egress-counts.ts';
import { askInspector } from './inspector-client.ts';
import { openOwnCgroup } from './open-own-cgroup.ts';
import { openRecord } from './open-record.ts';
import { openTraces } from './open-traces.ts';
import { isPublic } from './public-endpoint.ts';
import { isRecordReady, openReadiness } from './readiness.ts';
import { needsDashboardPort } from './run-dashboard.ts';
import { makeRole, type RunningRole } from './run-role.ts';
import { lineToAsk, lineToGet, makeSampleAccount } from './sample-account.ts';
import { needsOwnPorts, serveApi } from './serve-api.ts';
import { sealOf } from './shared.ts';
import { openStateFolder } from './state-folder.ts';
import { showStatusLine } from './status-line.ts';
import { showYtDlpVersion } from './yt-dlp-version.ts';

const help = `Usage: trawl up

Runs trawl on this machine: redis-server, the public API, controller, workers, inspector and egress. Ctrl-C stops it; the next start goes on where it was.
All settings are environment variables: docs/config.md lists them.
`;

export const runCommand = makeRole({ name: 'up', help, needs: { rules: [needsDashboardPort, needsOwnPorts] }, start });

async function start(running: RunningRole): Promise<void> {
  const { config, log, metrics, stop, terminal } = running;
  const report = (finding: Finding) => terminal.err(`${finding.text}\n`);
  await refuseUnfitMachine(config, report);
  const home = await openStateFolder(config);
  stop.add('data folder', home.release);
  const isInCluster = config.runner === 'kubernetes';
  const work = join(home.path, 'work');
  // Before the first child: with version 2, this process moves to another cgroup.
  const cgroup = isInCluster ? null : await openOwnCgroup(config.cgroup, join(home.path, 'cgroup'), work, log);
  if (cgroup !== null) stop.add('cgroup', cgroup.close);
  const readiness = await openReadiness(running, ['record', 'egress', 'inspector', 'controller', 'api']);
  const traces = await openTraces(running);
  const store = await openRecord(running, report);
  readiness.set('record', () => isRecordReady(store));
  await clearWork(work, stop);
  const sandbox = isInCluster ? config.sandbox : await requireIsolation(config, home.path, terminal);
  if (!isInCluster) showYtDlpVersion(projectPython, metrics, log);
  const seal = sealOf(config, home.secret);
  const objects = await openObjects(config, seal, store.clock.now, () => isPublic(config.s3Endpoint));
  const socketOf = (part: string) => ({ path: join(home.path, `${part}.sock`) });
  const [egress, inspector, gateway] = [socketOf('egress'), socketOf('inspector'), socketOf('gateway')];
  const inherited = { ...childEnv(terminal.env, home.path), TRAWL_SANDBOX: sandbox };
  const env = { ...inherited, TRAWL_CGROUP: cgroup?.folder ?? 'off', TRAWL_EGRESS_ADDRESS: `unix:${egress.path}` };
  keepEgress(egress, socketOf('probe'), inherited, running);
  readiness.set('egress', () => isListening(egress));
  const inspectorEnv = { ...env, TRAWL_INSPECTOR_ADDRESS: `unix:${inspector.path}` };
  stop.add('inspector', keepChild({ role: 'inspector', env: inspectorEnv, log, answersAt: inspector }), 6);
  readiness.set('inspector', () => isListening(inspector));
  const parts = { config, store, seal, objects, inspector: askInspector(inspector), log, metrics, traces };
  const openWorkers = isInCluster
    ? await kubernetesWorkers(running, store.clock.now)
    : processWorkers({ ...env, TRAWL_GATEWAY_ADDRESS: `unix:${gateway.path}` }, work, seal, log);
  const gatewayAddress = isInCluster ? { host: config.host, port: config.gatewayPort } : gateway;
  let publicUrl = config.publicUrl;
  const controller = await buildController(
    { ...parts, openWorkers, gatewayAddress, egress, publicUrl: () => publicUrl },
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
  await home.keepUrls(api);
  terminal.out(`trawl answers at ${api.publicUrl}\nIts dashboard is at ${api.dashboardUrl}\n`);
  const show = (key: string, secret: string) => terminal.out(introduce(api, key, secret));
  await makeSampleAccount(store, seal, home.path, show);
  stop.add('status', showStatusLine(metrics, process.stdout).close);
}

/** Keeps the proxy running at a socket; its counters become those of this process. */
function keepEgress(
  { path }: SocketAddress,
  probe: SocketAddress,
  env: Readonly<Record<string, string>>,
  { log, metrics, stop }: RunningRole,
): void {
  const args = ['--at', path, '--probe', probe.path];
  const onStart = addEgressCounts(metrics, probe);
  stop.add('egress', keepChild({ role: 'egress', args, env, log, answersAt: probe, onStart }), 6);
}

/** Ends and removes what was left by workers that were killed with everything else: none runs yet. */
async function clearWork(work: string, stop: Shutdown): Promise<void> {
  stop.add('stuck sandboxes', () => endStuckSandboxes(work));
  await endStuckSandboxes(work);
  // A link may lead to files of others.
  if ((await lstat(work).catch(() => null))?.isDirectory() === false) await unlink(work);
  // The folder itself stays: it may be a disk of its own, whose lost+found belongs to root.
  await makeFolder(work, 0o700);
  await removeNames(work, /^(?!lost\+found$)/);
}

/** Runs workers as Jobs of a cluster; loads what knows one only then. */
async function kubernetesWorkers(
  { config, terminal, metrics, log, ending }: RunningRole,
  now: () => number,
): Promise<OpenWorkers> {
  const { openKubernetesWorkers } = await import('./kubernetes-workers.ts');
  return openKubernetesWorkers({ config, env: terminal.env, now, metrics, log, ending });
}

/** Runs workers as processes of this machine, each with a token that this process signs. */
function processWorkers(env: Readonly<Record<string, string>>, work: string, seal: Seal, parentLog: Log): OpenWorkers {
  const log = parentLog.with({ part: 'process runner' });
  const tokenOf = (attempt: AttemptId) => makeToken(attempt, seal.sign);
  const freeBytes = () => {
    const { blocks, bavail, bsize } = statfsSync(work);
    // Some file systems tell no size, such as one in memory without a limit.
    return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
  };
  return async () => ({
    runner: openProcessRunner({ command: [...ownCommand, 'worker'], env, log, tokenOf, freeBytes }),
    attemptOf: async (token) => readToken(token, seal.verify),
  });
}

/**
 * Returns the setting for workers and inspector, which choose again and warn: where bubblewrap works now it is required of them,
 * whatever happens later. The start is refused here, where the operator sees it.
 */
async function requireIsolation(config: Config, data: string, { env }: Terminal): Promise<SandboxMode> {
  const { sandbox, cookies, ytdlpPlugins } = config;
  const work = join(data, 'work');
  const chosen = await chooseSandbox(sandbox, work, projectPython, () => undefined).catch((error: Error) => {
    throw refuse('unavailable', error.message);
  });
  const kept = [data, ...(cookies === null ? [] : [cookies])];
  const exposed = findExposed(kept, findPrograms(env.PATH ?? ''), ytdlpPlugins);
  if (sandbox !== 'off' && !hasOwnUser(chosen) && exposed.length > 0) {
    const where = 'in a folder of programs or plugins, and children run as the user of trawl';
    throw refuse('unavailable', `yt-dlp could read ${exposed.join(' and ')}: it lies ${where}. Choose another folder.`);
  }
  return hasNamespaces(chosen) ? 'required' : sandbox;
}

/** The doctor's checks: a problem refuses the start, a note is reported. */
async function refuseUnfitMachine(config: Config, report: (finding: Finding) => void): Promise<void> {
  const findings = await checkMachine(config);
  const problems = findings.filter(({ level }) => level === 'problem');
  if (problems.length > 0) throw refuse('unavailable', problems.map(({ text }) => text).join('\n'));
  for (const finding of findings) if (finding.level === 'note') report(finding);
}

function introduce({ publicUrl: url, dashboardUrl }: ServedUrls, key: string, secret: string): string {
  return `A sample account has 100 credits and this key, which is shown only now:
  ${key}
Paste this line into another terminal, in this folder: it fetches a film, shows its progress and checks the file. Any other URL may
stand in place of the film's.
  ${lineToGet(url, key)}
The film costs one credit, as this line then shows; ${url}/docs and docs/api.md have every call of the API.
  ${lineToAsk(url, key)}
Keys, jobs and money of the account are on its dashboard. This link signs you in once, within 72 hours:
  ${signInUrl(dashboardUrl, secret)}
`;
}
