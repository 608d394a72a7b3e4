import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { startDns } from '../dns.ts';
import type { Json } from '../json.ts';
import { tool } from '../tools.ts';
import type { Cluster } from './cluster.ts';
import type { Network } from './network.ts';

/** Services of a cluster with one real node: kube-proxy in the node, and a DNS server for their names on this machine. */
export interface ClusterServices {
  close(): Promise<void>;
}

/** Starts both; the node must have been started with `hasDns`, and the API server with an endpoint reconciler. */
export async function startServices(cluster: Cluster, network: Network, number: number): Promise<ClusterServices> {
  const proxy = startKubeProxy(cluster, `${network.name}-n${number}`, `node-${number}`);
  const dns = await startDns(network.address, 53);
  const stopping = new AbortController();
  const addresses = new Map<string, string>();
  dns.answers = (name) => {
    const address = addresses.get(name.toLowerCase().replace(/\.cluster\.local$/, ''));
    return address === undefined ? [] : [address];
  };
  const watch = async () => {
    const events = cluster.admin.watch<Json>('/api/v1/services?watch=true', stopping.signal);
    for await (const { type, object } of events) {
      const { name, namespace } = object.metadata;
      if (type === 'DELETED') addresses.delete(`${name}.${namespace}.svc`);
      else addresses.set(`${name}.${namespace}.svc`, object.spec.clusterIP);
    }
  };
  // It ends with the test.
  const watching = watch().catch(() => undefined);
  return {
    async close() {
      stopping.abort();
      await watching;
      dns.close();
      const end = once(proxy, 'exit');
      proxy.kill('SIGKILL');
      await end;
    },
  };
}

function startKubeProxy(cluster: Cluster, place: string, name: string): ChildProcess {
  const log = openSync(join(cluster.folder, 'kube-proxy.log'), 'a');
  const words = [
    `--kubeconfig=${cluster.kubeconfig}`,
    '--proxy-mode=nftables',
    `--hostname-override=${name}`,
    // Limits of the whole machine, which are not the test's to change.
    '--conntrack-max-per-core=0',
    '--conntrack-tcp-timeout-established=0s',
    '--conntrack-tcp-timeout-close-wait=0s',
  ];
  const parent = ['--pdeathsig', 'KILL', 'nsenter', `--net=/run/netns/${place}`];
  const child = spawn('setpriv', [...parent, tool('kube-proxy'), ...words], { stdio: ['ignore', log, log] });
  closeSync(log);
  return child;
}
