import { isLeading, type RoleProcess, type spawnRole, startRole } from '../role-process.ts';
import { until } from '../until.ts';
import type { Prometheus } from './prometheus.ts';

type Environment = Readonly<Record<string, string>>;
export type Role = Parameters<typeof spawnRole>[0];

/** Processes of several roles, all of which Prometheus reads while they live. */
export interface RoleGroup {
  readonly start: (role: Role, env: Environment) => Promise<RoleProcess>;
  /** Those of a role that have not ended, oldest first. */
  readonly running: (role: Role) => readonly RoleProcess[];
  /** The controller that leads, as soon as one does. */
  readonly leader: () => Promise<RoleProcess>;
  /** Output of all processes of a role, ended ones included. */
  readonly outputOf: (role: Role) => string;
  readonly stop: () => Promise<void>;
}

const maxStarts = 5;

export function makeRoleGroup(prometheus: Pick<Prometheus, 'setTargets'>): RoleGroup {
  const parts: { readonly role: Role; readonly process: RoleProcess }[] = [];
  const hasEnded = ({ process: { exitCode, signalCode } }: RoleProcess) => exitCode !== null || signalCode !== null;
  const of = (role: Role) => parts.filter((part) => part.role === role).map((part) => part.process);
  const running = (role: Role) => of(role).filter((part) => !hasEnded(part));
  return {
    running,
    outputOf: (role) =>
      of(role)
        .map((part) => part.output())
        .join(''),
    start: async (role, env) => {
      const process = await startAgain(role, env);
      parts.push({ role, process });
      // One that has ended is still asked for: Prometheus learns so that it is away.
      prometheus.setTargets(parts.map((part) => part.process.probeAddress));
      return process;
    },
    leader: async () => {
      const find = async () => {
        const leads = await Promise.all(running('controller').map(isLeading));
        return leads.filter(Boolean).length === 1 ? running('controller')[leads.indexOf(true)] : undefined;
      };
      return (await until(find, 30, 'one controller leads')) as RoleProcess;
    },
    stop: async () => {
      await Promise.all(parts.map(({ process }) => process.end('SIGKILL')));
    },
  };
}

/** Starts a role as a cluster does: one that ends, because Redis does not answer soon on a busy machine, is started again. */
async function startAgain(role: Role, env: Environment): Promise<RoleProcess> {
  for (let tries = 1; ; tries++) {
    try {
      return await startRole(role, env);
    } catch (error) {
      if (tries === maxStarts) throw error;
    }
  }
}
