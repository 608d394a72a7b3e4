import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { tool } from '../tools.ts';
import { until } from '../until.ts';
import type { Cluster } from './cluster.ts';
import type { Network } from './network.ts';
import { run } from './network.ts';

/** The agent that enforces network policies on one node. */
export interface PolicyAgent {
  close(): Promise<void>;
}

const healthPort = 9_081;

/** Starts kube-network-policies in the node of this number: it judges each connection that begins there, and none that goes on. */
export async function startPolicyAgent(cluster: Cluster, network: Network, number: number): Promise<PolicyAgent> {
  const place = `${network.name}-n${number}`;
  const inside = [`--net=/run/netns/${place}`];
  const child = startAgent(cluster, inside, `node-${number}`);
  const isReady = () => {
    try {
      run('nsenter', ...inside, 'bash', '-c', `exec 3<>/dev/tcp/127.0.0.1/${healthPort}`);
      return true;
    } catch {
      return false;
    }
  };
  await until(isReady, 20, 'the agent of network policies runs');
  // The kernel lacks the queue of nftables, which the agent asks for; that of iptables brings it the same packets. Those to the
  // node itself do not pass FORWARD.
  for (const chain of ['FORWARD', 'INPUT']) {
    const bridged = chain === 'INPUT' ? ['-i', 'cni0'] : [];
    const news = ['-m', 'conntrack', '--ctstate', 'NEW', '-j', 'NFQUEUE', '--queue-num', '100'];
    run('nsenter', ...inside, 'iptables', '-t', 'mangle', '-A', chain, ...bridged, ...news);
  }
  return {
    async close() {
      const end = once(child, 'exit');
      child.kill('SIGKILL');
      await end;
    },
  };
}

function startAgent(cluster: Cluster, inside: readonly string[], name: string): ChildProcess {
  const log = openSync(join(cluster.folder, 'policy-agent.log'), 'a');
  const words = [
    `--kubeconfig=${cluster.kubeconfig}`,
    `--hostname-override=${name}`,
    '--disable-nri',
    '--fail-open=false',
    '--netfilter-bug-1766-fix=false',
    `--metrics-bind-address=127.0.0.1:${healthPort}`,
  ];
  const parent = ['--pdeathsig', 'KILL', 'nsenter', ...inside];
  const child = spawn('setpriv', [...parent, tool('kube-network-policies'), ...words], {
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  return child;
}
