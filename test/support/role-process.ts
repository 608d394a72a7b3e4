import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { type FollowedChild, followChild } from './followed-child.ts';
import { freePort } from './free-port.ts';
import { root } from './tree.ts';
import { until } from './until.ts';

/** A role in a process of its own, as an image starts it. */
export interface RoleProcess extends FollowedChild {
  /** Its main listener: the public API, the dashboard, the gateway, the inspector or the egress proxy. */
  readonly url: string;
  /** Host and port of its probes and metrics. */
  readonly probeAddress: string;
  /** Answers of its probe port. */
  probe(path: '/healthz' | '/readyz' | '/metrics'): Promise<{ status: number; text: string }>;
  end(signal: NodeJS.Signals): Promise<number | string>;
}

/** Settings of one part; where nothing is said, it listens on loopback, on ports of its own. */
type Env = Readonly<Record<string, string>>;

/** Starts a role of a tree and does not wait. */
export async function spawnRole(
  role: 'api' | 'dashboard' | 'controller' | 'inspector' | 'egress',
  env: Env,
  tree = root,
): Promise<RoleProcess> {
  const { TRAWL_HOST: host = '127.0.0.1' } = env;
  const [port, probePort, dashboardPort] = [await freePort(host), await freePort(host), await freePort(host)];
  const url = `http://${host}:${role === 'dashboard' ? dashboardPort : port}`;
  const own = {
    TRAWL_PORT: port,
    TRAWL_GATEWAY_PORT: port,
    TRAWL_PROBE_PORT: probePort,
    TRAWL_DASHBOARD_PORT: dashboardPort,
  };
  const places = { inspector: { TRAWL_INSPECTOR_ADDRESS: url }, dashboard: { TRAWL_DASHBOARD_URL: url } };
  const place = role === 'inspector' || role === 'dashboard' ? places[role] : {};
  const child = spawn(join(tree, 'trawl'), [role, ...(role === 'egress' ? ['--at', String(port)] : [])], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      ...mapValues(own, String),
      ...place,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const followed = followChild(child);
  return {
    ...{ ...followed, url, probeAddress: `${host}:${probePort}` },
    probe: async (path) => {
      const answer = await fetch(`http://${host}:${probePort}${path}`);
      return { status: answer.status, text: await answer.text() };
    },
    end: (signal) => {
      child.kill(signal);
      return followed.ended;
    },
  };
}

/** Most restarts of a role that gave up because Redis answered late; Kubernetes would restart it, too. */
const maxLateStarts = 5;

/** Starts a role and waits until it is ready; on a busy machine Redis may answer its first start too late. */
export async function startRole(...given: Parameters<typeof spawnRole>): Promise<RoleProcess> {
  for (let starts = 1; ; starts++) {
    const part = await spawnRole(...given);
    await whenReady(part, given[0]);
    if (part.process.exitCode === null) return part;
    const isLate = /Redis cannot be reached at \S+: No answer within/.test(part.output());
    if (!isLate || starts > maxLateStarts)
      throw new Error(`${given[0]} ended with: ${lastLine(part.output())}\n${part.output()}`);
  }
}

/** Waits until a role is ready, or has ended. */
async function whenReady(part: RoleProcess, role: string): Promise<void> {
  const isReady = () =>
    part.probe('/readyz').then(
      ({ status }) => status === 200,
      () => false,
    );
  const hasEnded = () => part.process.exitCode !== null;
  await until(async () => hasEnded() || (await isReady()), 30, `${role} is ready`).catch((error: Error) => {
    part.process.kill('SIGKILL');
    throw new Error(`${error.message}: ${part.output()}`);
  });
}

/** Returns true when the metrics of a controller say that it leads. */
export async function isLeading({ probe }: RoleProcess): Promise<boolean> {
  const { text } = await probe('/metrics').catch(() => ({ text: '' }));
  return /^trawl_leader 1$/m.test(text);
}

function mapValues<T>(of: Readonly<Record<string, T>>, turn: (value: T) => string): Record<string, string> {
  return Object.fromEntries(Object.entries(of).map(([name, value]) => [name, turn(value)]));
}

/** Why a program gave up stands in its last line; long outputs are shown shortened. */
function lastLine(output: string): string {
  return output.trimEnd().split('\n').at(-1) ?? '';
}
