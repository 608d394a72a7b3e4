import { cpSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { type ChartGround, namespace } from '../support/cluster/chart-ground.ts';
import type { CommandResult } from '../support/operator.ts';
import { readPreparation, runInBash, runProcedure } from '../support/procedures.ts';
import { tool } from '../support/tools.ts';

type Names = Readonly<Record<string, string>>;

/** A shell in which an operator has run the lines of docs/operate.md about a cluster. */
export interface OperatorShell {
  /** Runs a procedure, and returns what it printed. */
  readonly run: (title: string, names?: Names, change?: (script: string) => string) => Promise<string>;
  readonly tryRun: (title: string, names?: Names, change?: (script: string) => string) => Promise<CommandResult>;
  /** Makes the pod `trawl-operator` anew. */
  readonly makePod: () => Promise<void>;
}

/** The volume claim that the lines name. */
export const claim = 'trawl-backups';

/** Runs the lines of docs/operate.md word for word except the namespace and the number of replicas, which an operator chooses. */
export async function openOperatorShell({ cluster }: ChartGround, folder: string): Promise<OperatorShell> {
  const [kubeconfig, exported] = [join(folder, 'kubeconfig'), join(folder, 'names')];
  // The lines change the namespace of the kubeconfig.
  cpSync(cluster.kubeconfig, kubeconfig);
  const homes = { HOME: folder, HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder };
  const PATH = [...['kubectl', 'helm'].map((name) => dirname(tool(name))), process.env.PATH].join(':');
  const own = { ...homes, PATH, KUBECONFIG: kubeconfig, KUBECACHEDIR: '/dev/null', EXPORTED: exported };
  const lines = readPreparation('In a cluster')
    .replace('--namespace trawl\n', `--namespace ${namespace}\n`)
    .replace('--replicas=2', '--replicas=1');
  expectSuccess(await runInBash(`set -a\n${lines}\nenv -0 >"$EXPORTED"`, own));
  const pairs = readFileSync(exported, 'utf8').split('\0').filter(Boolean);
  const names: Names = { ...Object.fromEntries(pairs.map((pair) => pair.split(/=(.*)/s).slice(0, 2))), PATH };
  const tryRun: OperatorShell['tryRun'] = (title, more = {}, change) =>
    runProcedure(title, { ...names, ...more }, change);
  return {
    tryRun,
    run: async (...given) => expectSuccess(await tryRun(...given)),
    makePod: async () => {
      expectSuccess(await runInBash('make_pod', names));
    },
  };
}

function expectSuccess({ code, out, err }: CommandResult): string {
  expect(code, `${out}${err}`).to.equal(0);
  return out;
}
