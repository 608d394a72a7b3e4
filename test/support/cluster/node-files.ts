import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface NodeFiles {
  readonly folder: string;
  /** The name of the node's cgroup. */
  readonly group: string;
  readonly podRange: string;
  /** The address of this machine for the node. */
  readonly machine: string;
  readonly ca: string;
  readonly key: string;
  readonly cert: string;
  /** True when pods ask this machine for the names of Services. */
  readonly hasDns: boolean;
}

/** The image of the process that holds a pod's namespaces. */
export const pauseImage = 'local.test/pause:1';

/** Writes the configuration of containerd, its network plugin and the kubelet of one node. */
export function writeNodeFiles(files: NodeFiles): void {
  const write = (name: string, content: string | object) => {
    const path = join(files.folder, name);
    mkdirSync(join(path, '..'), { recursive: true });
    // JSON is YAML.
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content, null, 2));
  };
  write('ca.crt', files.ca);
  write('node.key', files.key);
  write('node.crt', files.cert);
  write('resolv.conf', `nameserver ${files.machine}\n`);
  write('kubelet.yaml', kubelet(files));
  write('containerd.toml', containerd(files.folder));
  write('cni/10-test.conflist', cni(files));
  // Every image that is not there is looked for in a registry of this machine, whether a test runs one or not.
  const registry = `http://${files.machine}:5001`;
  const capabilities = 'capabilities = ["pull", "resolve"]';
  write('registries/_default/hosts.toml', `server = "${registry}"\n[host."${registry}"]\n  ${capabilities}\n`);
}

function kubelet({ folder, group, machine, hasDns }: NodeFiles): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: join(folder, 'ca.crt') },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: join(folder, 'node.crt'),
    tlsPrivateKeyFile: join(folder, 'node.key'),
    containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
    cgroupDriver: 'cgroupfs',
    // Kubelets that share one remove each other's cgroups.
    cgroupRoot: `/${group}`,
    failCgroupV1: false,
    failSwapOn: false,
    resolvConf: join(folder, 'resolv.conf'),
    ...(hasDns && { clusterDNS: [machine], clusterDomain: 'cluster.local' }),
    seccompDefault: true,
    maxPods: 60,
    oomScoreAdj: 0,
    nodeStatusUpdateFrequency: '2s',
    nodeStatusReportFrequency: '10s',
    nodeLeaseDurationSeconds: 8,
    // Period at which the kubelet measures the volumes of pods; a minute when left out.
    volumeStatsAggPeriod: '2s',
    imageMinimumGCAge: '24h',
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    evictionHard: {
      'memory.available': '100Mi',
      'nodefs.available': '1%',
      'imagefs.available': '1%',
      'nodefs.inodesFree': '1%',
    },
    shutdownGracePeriod: '0s',
  };
}

function cni({ folder, podRange }: NodeFiles): object {
  const ipam = {
    type: 'host-local',
    dataDir: join(folder, 'cni-state'),
    ranges: [[{ subnet: podRange }]],
    routes: [{ dst: '0.0.0.0/0' }],
  };
  const bridge = { type: 'bridge', bridge: 'cni0', isGateway: true, ipMasq: false, hairpinMode: true, ipam };
  return { cniVersion: '0.4.0', name: 'test', plugins: [bridge] };
}

function containerd(folder: string): string {
  return `version = 2
root = "${folder}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "${folder}/registries"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
`;
}
