// Run by `helm test` in a pod that no network policy lets connect to anything but nothing: each way it has is one too many.
import { lookup } from 'node:dns/promises';
import { connect } from 'node:net';

const { CLOSED = '', KUBERNETES_SERVICE_HOST: api = '', KUBERNETES_SERVICE_PORT: port = '443' } = process.env;
const targets = [...CLOSED.split(','), `${api}:${port}`];
const open: string[] = [];
for (const target of targets) {
  const [, host = '', digits = ''] = /^(.*):(\d+)$/.exec(target) ?? [];
  if (await reaches(host, Number(digits))) open.push(target);
}
if (open.length > 0) {
  console.error(`The cluster does not enforce network policies: a pod without any right reaches ${open.join(', ')}.
Whoever takes over a yt-dlp or ffmpeg reaches it too where the kernel of the node is older than Linux 6.7, so leave workers.policiesEnforced
false, and install a network plugin that enforces them, such as Calico, Cilium or kube-network-policies.`);
  process.exit(1);
}
console.log('The cluster enforces network policies: a pod without any right reaches nothing.');

async function reaches(host: string, port: number): Promise<boolean> {
  const address = await Promise.race([
    lookup(host).then(({ address }) => address, () => null),
    new Promise<null>((resolve) => setTimeout(resolve, 3_000, null)),
  ]);
  if (address === null) return false;
  return new Promise((resolve) => {
    const wire = connect({ host: address, port, timeout: 3_000 });
    const settle = (isOpen: boolean) => {
      wire.destroy();
      resolve(isOpen);
    };
    wire.once('connect', () => settle(true));
    wire.once('timeout', () => settle(false));
    wire.once('error', () => settle(false));
  });
}
