import { isIP } from 'node:net';
import { UsageError } from '../base/command-line.ts';
import { type ConfigWith, readConfig } from '../base/config.ts';
import { isJsonObject, parseJson } from '../base/parse-json.ts';
import type { AdmissionAllowances } from '../runners/kubernetes/admission-rules.ts';
import type { AllowedTargets } from '../runners/kubernetes/namespace-policies.ts';
import { allowed, makeProgram } from './command-io.ts';
import { wholeNumber } from './command-values.ts';

/** Ended Jobs that may await their cleanup while TRAWL_WORKERS others run. */
const maxEndedJobs = 2_000;

const required = [
  'TRAWL_KUBE_NAMESPACE',
  'TRAWL_WORKER_IMAGE',
  'TRAWL_GATEWAY_ADDRESS',
  'TRAWL_EGRESS_ADDRESS',
] as const;

const usage =
  'trawl manifests [--namespace N] [--controller-namespace N] [--max-jobs N] [--store CIDR:PORT]… [--bundled-store PORT] [--dns PEER]… [--dns-port N]… [--image IMAGE]… [--allow FIELD=JSON]… [--allow-mark KEY]…';
export const manifestsHelp = `Usage: ${usage}

Prints the Kubernetes objects that guard the namespace of the workers, as YAML for kubectl apply --filename -: the Role of the
controller and its binding to the service account trawl-controller, a ResourceQuota, a LimitRange, NetworkPolicies, and an
admission policy that compares every field of a Job and its pod with what the controller makes. Both namespaces and the service accounts must
be there before.

It reads the settings of the controller: ${required.join(', ')}
and the settings of its workers must be as the controller has them, because the admission policy refuses any other pod.

  --namespace N             Namespace of the workers; TRAWL_KUBE_NAMESPACE unless given.
  --controller-namespace N  Namespace of controller and egress, whose pods carry the labels app.kubernetes.io/name: trawl
                            and app.kubernetes.io/component: controller or egress; that of the workers unless given.
  --max-jobs N              Jobs and pods that may exist at once, ended ones included; TRAWL_WORKERS + ${maxEndedJobs} unless given.
  --store CIDR:PORT         An object store that workers may reach although it is not public; may be given several times.
  --bundled-store PORT      The object store that the chart installs for trying out: pods beside the controller with the label
                            app.kubernetes.io/component: s3.
  --dns PEER                A DNS server that workers ask in place of kube-dns, as a peer of a NetworkPolicy in JSON, such as
                            '{"ipBlock":{"cidr":"169.254.20.10/32"}}'; may be given several times.
  --dns-port N              Port of these servers, 53 unless given; may be given several times.
  --image IMAGE             Another image that workers may have, such as the one before an upgrade; may be given several times.
  --allow FIELD=JSON        Another value that a field of a worker pod may have, or of its container as worker.FIELD, because the
                            cluster sets it: 'imagePullSecrets=[{"name":"registry"}]', 'nodeSelector={"pool":"films"}' of a Kueue
                            flavour, 'worker.resources={…}' with what a LimitRange adds; may be given several times.
  --allow-mark KEY          A label or an annotation that the cluster adds to worker pods; may be given several times.
  --help                    Show this text.
`;

const text = { type: 'string' } as const;
const options = {
  namespace: text,
  'controller-namespace': text,
  'max-jobs': text,
  store: { ...text, multiple: true },
  'bundled-store': text,
  dns: { ...text, multiple: true },
  'dns-port': { ...text, multiple: true },
  image: { ...text, multiple: true },
  allow: { ...text, multiple: true },
  'allow-mark': { ...text, multiple: true },
} as const;

export const runCommand = makeProgram({ usage, help: manifestsHelp, options }, async (given, terminal) => {
  const env = given.namespace === undefined ? {} : { TRAWL_KUBE_NAMESPACE: given.namespace };
  const config = readConfig({ ...terminal.env, ...env }, { required });
  // Loaded only here, because the Kubernetes client is large and help must be fast.
  const { listManifests, writeYaml } = await import('../runners/kubernetes/namespace-manifests.ts');
  const { podShapeOf } = await import('../runners/kubernetes/pod-shape.ts');
  const { 'max-jobs': wanted } = given;
  const maxJobs =
    wanted === undefined ? config.workers + maxEndedJobs : allowed(wholeNumber(1, 9_999_999)(wanted, '--max-jobs'));
  const ways = {
    namespace: given['controller-namespace'] ?? config.kubeNamespace,
    gatewayPort: portOf(config.gatewayAddress, 'TRAWL_GATEWAY_ADDRESS'),
    egressPort: portOf(config.egressAddress, 'TRAWL_EGRESS_ADDRESS'),
    stores: (given.store ?? []).map(readStore),
    ...(given['bundled-store'] !== undefined && {
      bundledStorePort: readPort(given['bundled-store'], '--bundled-store'),
    }),
    ...(given.dns && {
      dns: {
        to: given.dns.map(readPeer),
        ports: (given['dns-port'] ?? ['53']).map((n) => readPort(n, '--dns-port')),
      },
    }),
  };
  const allowances = {
    images: given.image ?? [],
    fields: (given.allow ?? []).map(readAllowedField),
    marks: given['allow-mark'] ?? [],
  };
  terminal.out(writeYaml(listManifests(podShapeOf(config), ways, maxJobs, allowances)));
  return 0;
});

function readStore(text: string): AllowedTargets['stores'][number] {
  const [, address = '', prefix, port] = /^\[?([\da-f.:]+?)\]?\/(\d{1,3}):(\d{1,5})$/i.exec(text) ?? [];
  const family = isIP(address);
  const isValid =
    family > 0 && Number(prefix) <= (family === 4 ? 32 : 128) && Number(port) > 0 && Number(port) < 65_536;
  if (!isValid) throw new UsageError('--store must be CIDR:PORT, such as 10.0.0.7/32:9000');
  return { cidr: `${address}/${prefix}`, port: Number(port) };
}

function readPeer(text: string): object {
  const peer = parseJson(text);
  if (isJsonObject(peer)) return peer;
  throw new UsageError(`--dns must be a peer in JSON, such as '{"ipBlock":{"cidr":"169.254.20.10/32"}}'`);
}

function readPort(text: string, option: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535) throw new UsageError(`${option} must be a port from 1 to 65535`);
  return port;
}

function readAllowedField(text: string): AdmissionAllowances['fields'][number] {
  const [, name, json = ''] = /^((?:worker\.)?[a-z][A-Za-z]*)=(.+)$/s.exec(text) ?? [];
  const value = parseJson(json);
  if (name !== undefined && value !== undefined) return { name, value };
  throw new UsageError(`--allow must be FIELD=JSON, such as 'nodeSelector={"pool":"films"}'`);
}

function portOf(address: ConfigWith<'TRAWL_GATEWAY_ADDRESS'>['gatewayAddress'], name: string): number {
  if ('path' in address) throw new UsageError(`${name} must be http://host:port: pods reach no socket of this machine`);
  return address.port;
}
