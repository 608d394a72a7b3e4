import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { tool } from '../tools.ts';

export type ControlPlaneProgram = 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler';

/** One process of a control plane. Its log is `<name>.log` in the cluster's folder. */
export interface ControlPlaneProcess {
  pid(): number;
  isRunning(): boolean;
  /** Kills it with SIGKILL and waits for its end. */
  kill(): Promise<void>;
  /** Starts the process again after kill(); it needs a moment until it answers. */
  start(): void;
  /** Stops it in its tracks, until thaw(): it neither answers nor closes its connections. */
  freeze(): void;
  thaw(): void;
}

/** The controllers that a Job, its pod, its node and its namespace have to do with. */
export const controllers = [
  'job-controller',
  'cronjob-controller',
  'garbage-collector-controller',
  'ttl-after-finished-controller',
  'pod-garbage-collector-controller',
  'node-lifecycle-controller',
  'taint-eviction-controller',
  'serviceaccount-controller',
  'serviceaccount-token-controller',
  'root-ca-certificate-publisher-controller',
  'namespace-controller',
  'disruption-controller',
  'resourcequota-controller',
  'replicaset-controller',
  'deployment-controller',
  'endpointslice-controller',
  'endpoints-controller',
  'service-cidr-controller',
];

/** Starts a part that ends with this process at the latest; `built` is the name of the program that `make tools` builds. */
export function startControlPlaneProcess(
  folder: string,
  name: ControlPlaneProgram,
  words: readonly string[],
  built: string = name,
): ControlPlaneProcess {
  const program = tool(built);
  const spawnIt = () => {
    const log = openSync(join(folder, `${name}.log`), 'a');
    try {
      return spawn('setpriv', ['--pdeathsig', 'KILL', program, ...words], { cwd: folder, stdio: ['ignore', log, log] });
    } finally {
      closeSync(log);
    }
  };
  let child: ChildProcess = spawnIt();
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  return {
    pid: () => child.pid ?? 0,
    isRunning,
    kill: async () => {
      if (!isRunning()) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
    start: () => {
      child = spawnIt();
    },
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
  };
}
