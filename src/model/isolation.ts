/**
 * Isolation of children, named as logs, doctor and documents name it: bubblewrap and a user id of its own, bubblewrap with a user
 * namespace, a user id of its own and Landlock where the kernel has it, Landlock alone on one machine, or Landlock inside a
 * worker's pod; `none` where the kernel has no Landlock either.
 */
type Isolation = 'bwrap-user' | 'bwrap-namespace' | 'landlock-user' | 'landlock' | 'pod' | 'none';

/** Accesses that Landlock bars, from version 1 on, besides those of earlier versions. What no version bars, such as UDP and modes of files, the seccomp filter does. */
const landlockBars = [
  'reading and writing files of others',
  'moving files between folders',
  'truncating files of others',
  'TCP connections past egress',
  'commands to devices',
  'signals to other processes, abstract UNIX sockets',
];

/** First version of Landlock that bars TCP connections. */
export const tcpVersion = 4;

export function isolationOf(
  sandbox: 'user' | 'namespace' | 'landlock-user' | 'none',
  landlock: number,
  isPod: boolean,
): Isolation {
  if (sandbox === 'user' || sandbox === 'namespace') return `bwrap-${sandbox}`;
  if (isPod) return 'pod';
  if (sandbox === 'landlock-user') return sandbox;
  return landlock > 0 ? 'landlock' : 'none';
}

/** Returns why no child may run in a pod where nothing bars its TCP connections, or null. */
export function findOpenNetwork(
  isolation: Isolation,
  landlock: number,
  network: 'policies-enforced' | null,
): string | null {
  if (isolation !== 'pod' || landlock >= tcpVersion || network !== null) return null;
  return (
    `${versionSentence(landlock)}, so nothing in this pod bars TCP connections of yt-dlp and ffmpeg past egress: run Linux 6.7 or ` +
    'newer with Landlock on this node, or set TRAWL_WORKER_NETWORK=policies-enforced if the cluster enforces the network policies of trawl manifests.'
  );
}

export function describeLandlock(version: number): string {
  const [barred, open] = [landlockBars.slice(0, version), landlockBars.slice(version)];
  const bars = barred.length > 0 ? `; it bars ${barred.join(', ')}` : '';
  const leaves = open.length > 0 ? `; without bubblewrap, children are free in ${open.join(', ')}` : '';
  return `${versionSentence(version)}${bars}${leaves}.`;
}

function versionSentence(version: number): string {
  return version > 0 ? `The kernel has version ${version} of Landlock` : 'The kernel has no Landlock';
}
