import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Finding } from '../admin/finding.ts';
import { judgeConnection } from '../admin/health.ts';
import { judgeMachine } from '../admin/machine.ts';
import type { Terminal } from '../admin/terminal.ts';
import { type Config, ConfigError, readConfig } from '../base/config.ts';
import { Refusal, refuse } from '../base/errors.ts';
import { type Log, makeLog } from '../base/log.ts';
import { type Metrics, makeMetrics } from '../base/metrics.ts';
import { startProbe } from '../base/probe.ts';
import { makeSeal } from '../base/seal.ts';
import { makeStop, type Stop } from '../base/stop.ts';
import type { Inspector } from '../model/inspected.ts';
import type { Job } from '../model/job.ts';
import { makeLink } from '../model/link.ts';
import { openStore, recordFolder } from '../store/open.ts';
import type { Store } from '../store/script.ts';
import { startRedis } from '../store/server.ts';
import { keepChild } from './children.ts';
import { openHome } from './home.ts';
import { askInspector } from './inspector.ts';
import { runJobs } from './jobs.ts';
import { openObjects } from './objects.ts';
import { runProcesses } from './processes.ts';
import { type Checks, findMissing } from './ready.ts';
import { linesToTry, makeSample } from './sample.ts';
import { serveApi } from './serve.ts';
import { isListening, listenAt, listenOn } from './socket.ts';
import { showStatus } from './status.ts';
import { envOfParts, ownCommand } from './surroundings.ts';
import { startWork, type WorkParts } from './work.ts';

const help = `Usage: trawl up

Runs trawl on this machine: redis-server, the public API, controller, workers, inspector and egress. Ctrl-C stops it; the next start goes on where it was.
All settings are environment variables: docs/config.md lists them.
`;

/** Runs everything on one machine until SIGTERM or Ctrl-C; gives the exit code. */
export async function runUp(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    const { values } = parseArgs({ args: [...args], options: { help: { type: 'boolean', short: 'h' } } });
    if (values.help) {
      terminal.out(help);
      return 0;
    }
  } catch (error) {
    terminal.err(`${error instanceof Error ? error.message : error}\n\n${help}`);
    return 2;
  }
  const stop = makeStop();
  const ended = new Promise<void>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
  });
  try {
    const config = readConfig(terminal.env, (path) => readFileSync(path, 'utf8'));
    const log = makeLog({
      level: config.logLevel,
      write: (line) => process.stdout.write(line),
      now: Date.now,
    });
    await start(config, log, stop, terminal);
    await ended;
    log.info('stopping');
    await stop.run();
    return 0;
  } catch (error) {
    terminal.err(`${sentenceOf(error)}\n`);
    // What was opened before is released; what goes wrong then is told after the cause.
    await stop.run().catch((late: Error) => terminal.err(`${late.message}\n`));
    return 1;
  }
}

async function start(config: Config, log: Log, stop: Stop, terminal: Terminal): Promise<void> {
  const tell = (finding: Finding) => terminal.err(`${finding.text}\n`);
  await checkMachine(config, tell);
  const metrics = makeMetrics();
  const home = await openHome(config.data, config.secret);
  stop.add('data folder', home.release);
  const not = () => false;
  const checks: Checks = new Map(['record', 'egress', 'inspector', 'controller', 'api'].map((name) => [name, not]));
  const ready = () => findMissing(checks);
  const probe = await startProbe({ port: config.probePort, host: config.host, metrics, ready });
  stop.add('probe', probe.close);
  const store = await openRecord(config, metrics, log, stop);
  for (const finding of await judgeConnection(store.connection, config)) if (finding.level !== 'ok') tell(finding);
  checks.set('record', store.connection.ready);
  // Nobody works yet: what lies there was left by workers that were killed with everything else.
  await rm(join(home.path, 'work'), { recursive: true, force: true });
  const seal = makeSeal({ secret: home.secret, old: config.secretOld });
  const objects = await openObjects(config, { folder: join(home.path, 'objects'), seal, now: store.clock.now });
  const env = envOfParts(terminal.env, home.path);
  const inspector = startReaders({ home: home.path, env, checks, log }, stop);
  const parts = { config, store, seal, objects, inspector, log, metrics };
  let publicUrl = config.publicUrl;
  const linkOf = (job: Job) => {
    const until = (job.ended_at ?? 0) + config.fileHours * 3_600_000;
    const isGone = job.removed_at !== null || store.clock.now() >= until;
    return isGone ? null : makeLink(job, until, publicUrl, seal.sign);
  };
  const controller = await startWork({ ...parts, ...placesOf(parts, home.path, env, terminal.env), linkOf }, stop);
  checks.set('controller', controller.isLeading);
  const api = await serveApi(parts, stop);
  publicUrl = api.publicUrl;
  checks.set('api', () => true);
  stop.add('readiness', () => {
    checks.set('api', not);
    controller.pause();
  });
  terminal.out(`trawl answers at ${api.publicUrl}\n`);
  await makeSample(store, seal, home.path, (key) => terminal.out(introduce(api.publicUrl, key)));
  stop.add('status', showStatus(metrics, process.stdout).close);
}

type Own = Parameters<typeof runProcesses>[0]['env'];

/** Where workers run, where their gateway listens, and the way out: on this machine all of it is sockets. */
function placesOf(
  { config, store, seal, metrics, log }: Pick<WorkParts, 'config' | 'store' | 'seal' | 'metrics' | 'log'>,
  home: string,
  own: Own,
  env: Terminal['env'],
): Pick<WorkParts, 'openWorkers' | 'listen' | 'egress'> {
  const egress = join(home, 'egress.sock');
  const gateway = join(home, 'gateway.sock');
  const inCluster = config.runner === 'kubernetes';
  const told = { ...own, TRAWL_GATEWAY_ADDRESS: `unix:${gateway}`, TRAWL_EGRESS_ADDRESS: `unix:${egress}` };
  return {
    openWorkers: inCluster
      ? runJobs({ config, env, now: store.clock.now, metrics, log })
      : runProcesses({ command: ownCommand, env: told, seal, log }),
    listen: (server) => (inCluster ? listenOn(server, config.host, config.gatewayPort) : listenAt(server, gateway)),
    egress: { socketPath: egress },
  };
}

/** The doctor's word on this machine: a problem refuses the start, everything else that is not well is told. */
async function checkMachine(config: Config, tell: (finding: Finding) => void): Promise<void> {
  const findings = await judgeMachine(config);
  const problems = findings.filter(({ level }) => level === 'problem');
  if (problems.length > 0) throw refuse('unavailable', problems.map(({ text }) => text).join('\n'));
  for (const finding of findings) if (finding.level === 'note') tell(finding);
}

async function openRecord(config: Config, metrics: Metrics, log: Log, stop: Stop): Promise<Store> {
  if (config.redisUrl === null) {
    const redis = await startRedis({ folder: recordFolder(config.data), log });
    stop.add('redis', redis.stop, 10);
  }
  const { store, close } = await openStore(config, log, (script, seconds) =>
    metrics.redis_seconds.observe({ script }, seconds),
  );
  stop.add('record', close);
  return store;
}

interface Readers {
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  readonly checks: Checks;
  readonly log: Log;
}

/** Starts what reaches the outside beside the workers: egress, and the inspector, which warms up meanwhile. */
function startReaders({ home, env, checks, log }: Readers, stop: Stop): Inspector {
  const egressSocket = join(home, 'egress.sock');
  const inspectorSocket = join(home, 'inspector.sock');
  const egress = keepChild({
    name: 'egress',
    command: [...ownCommand, 'egress', '--lifeline', '--at', egressSocket],
    env,
    log,
  });
  stop.add('egress', egress.stop, 6);
  checks.set('egress', () => isListening(egressSocket));
  const inspecting = keepChild({
    name: 'inspector',
    command: [...ownCommand, 'inspector', '--lifeline'],
    env: { ...env, TRAWL_INSPECTOR_ADDRESS: `unix:${inspectorSocket}`, TRAWL_EGRESS_ADDRESS: `unix:${egressSocket}` },
    log,
  });
  stop.add('inspector', inspecting.stop, 6);
  checks.set('inspector', () => isListening(inspectorSocket));
  return askInspector({ socketPath: inspectorSocket });
}

function introduce(url: string, key: string): string {
  const lines = linesToTry(url, key).map((line) => `  ${line}\n`);
  return `A sample account has 100 credits and this key, which is shown only now:
  ${key}
Paste these lines into another terminal: they show what the account has, ask for a film, wait for it and fetch it as film.mp4.
Any other URL may stand in place of the film's. The film costs one credit, as the first line then shows.
${lines.join('')}`;
}

/** A sentence for the person who started it; what nobody expected keeps its place in the code. */
function sentenceOf(error: unknown): string {
  if (error instanceof Refusal || error instanceof ConfigError) return error.message;
  if (!(error instanceof Error)) return String(error);
  const { code, port } = error as NodeJS.ErrnoException & { port?: number };
  if (code === 'EADDRINUSE') return `The port ${port} is taken by another program`;
  if (code === 'EACCES' || code === 'EROFS' || code === 'ENOSPC') return error.message;
  return error.constructor === Error && code === undefined ? error.message : (error.stack ?? error.message);
}
