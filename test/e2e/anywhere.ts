import { randomBytes } from 'node:crypto';
import { workerJobSettings } from '../../src/base/settings/worker-job-settings.ts';
import { expectNoSecrets, runJobEndToEnd } from '../support/cluster/end-to-end.ts';
import { workerImage } from '../support/cluster/image.ts';
import { type Installation, openInstallation } from '../support/cluster/installation.ts';
import { removeNamespace } from '../support/cluster/worker-namespace.ts';

/** Run by `make e2e`: the cluster's administrator, and the address of this machine that its pods reach. */
const { KUBECONFIG: kubeconfig = '', ADDRESS: address = '' } = process.env;

describe('a job in the cluster of KUBECONFIG', () => {
  const namespace = `trawl-e2e-${randomBytes(4).toString('hex')}`;
  let trawl: Installation;

  before(async () => {
    if (!kubeconfig || !address) throw new Error('KUBECONFIG and ADDRESS must be set');
    const given = Object.keys(workerJobSettings).flatMap((name) =>
      process.env[name] ? [[name, process.env[name]] as const] : [],
    );
    const env = Object.fromEntries(given);
    trawl = await openInstallation({ kubeconfig, address, namespace, image: workerImage, env });
    await trawl.startController();
  });
  after(async () => {
    await trawl?.close();
    if (kubeconfig) await removeNamespace({ kubeconfig }, namespace);
  });

  it('ends with its file in S3, one charge and one webhook, and nothing of it is left', () => runJobEndToEnd(trawl));

  it('had nothing secret stored in the cluster', () => expectNoSecrets(trawl, trawl.recordedObjects()));
});
