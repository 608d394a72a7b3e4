import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { json as readJson } from 'node:stream/consumers';
import type { Json } from '../json.ts';
import { until } from '../until.ts';
import type { Cluster } from './cluster.ts';

/** The answer of an admission webhook: a refusal with its reason, or an admission with a JSON patch. */
export type AdmissionAnswer = { readonly no: string } | { readonly yes: readonly object[] };

/** An admission webhook of somebody else in the cluster. */
export interface AdmissionWebhook {
  /** Connections are accepted from now on, and nothing is answered. */
  hang(): void;
  /** Nobody answers any more, and the cluster goes on asking. */
  silence(): Promise<void>;
  /** The cluster does not ask any more. */
  remove(): Promise<void>;
}

interface AdmissionWebhookOptions {
  readonly namespace: string;
  readonly others?: readonly string[];
  readonly resource: 'jobs' | 'pods';
  /** The cluster goes on without an answer after this time; otherwise it refuses what nobody judged for 2 s. */
  readonly ignoredAfterSeconds?: number;
}

const configurations = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const name = 'test.example.com';

/** Lets a webhook judge new Jobs or pods of a namespace and of others that may not be there yet; answers when the cluster asks it. */
export async function startAdmissionWebhook(
  { admin, authority }: Cluster,
  { namespace, others = [], resource, ignoredAfterSeconds }: AdmissionWebhookOptions,
  judge: (object: Json) => AdmissionAnswer,
): Promise<AdmissionWebhook> {
  let asked = 0;
  let hangs = false;
  const server = createServer(authority.issue({ name, hosts: ['127.0.0.1'] }), async (req, res) => {
    const { request } = (await readJson(req)) as { request: { uid: string; object: Json } };
    asked++;
    if (hangs) return;
    const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' };
    res.end(JSON.stringify({ ...review, response: { uid: request.uid, ...answerOf(judge(request.object)) } }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const [group, path] = resource === 'jobs' ? ['batch', '/apis/batch/v1'] : ['', '/api/v1'];
  await admin.ask('POST', configurations, {
    metadata: { name },
    webhooks: [
      {
        name,
        clientConfig: {
          url: `https://127.0.0.1:${port}/`,
          caBundle: Buffer.from(authority.cert).toString('base64'),
        },
        rules: [{ apiGroups: [group], apiVersions: ['v1'], operations: ['CREATE'], resources: [resource] }],
        namespaceSelector: {
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: [namespace, ...others] }],
        },
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: ignoredAfterSeconds === undefined ? 'Fail' : 'Ignore',
        timeoutSeconds: ignoredAfterSeconds ?? 2,
      },
    ],
  });
  const probe = async () => {
    const objects = `${path}/namespaces/${namespace}/${resource}?dryRun=All`;
    // The object is invalid: the webhook is asked before that is judged.
    await admin.ask('POST', objects, { metadata: { name: 'probe' } }).catch(() => undefined);
    return asked > 0;
  };
  await until(probe, 20, 'the webhook is asked');
  const silence = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return {
    hang: () => {
      hangs = true;
    },
    silence,
    remove: async () => {
      await admin.ask('DELETE', `${configurations}/${name}`);
      await silence();
    },
  };
}

function answerOf(admission: AdmissionAnswer): object {
  if ('no' in admission) return { allowed: false, status: { message: admission.no } };
  const patch = Buffer.from(JSON.stringify(admission.yes)).toString('base64');
  return { allowed: true, patchType: 'JSONPatch', patch };
}
