import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import { makeAuthority } from '../support/certificate.ts';
import { accountFolder, startTestController, type TestController } from '../support/cluster/controller.ts';
import { endings } from '../support/cluster/pod.ts';
import { startTestbed, type Testbed } from '../support/cluster/testbed.ts';
import { startTlsProxy, type TlsProxy } from '../support/cluster/tls-proxy.ts';

const hosts = ['127.0.0.1'];

describe('a controller in a pod of a cluster whose authority is replaced', () => {
  let testbed: Testbed;
  let proxy: TlsProxy;
  let controller: TestController;

  before(async () => {
    testbed = await startTestbed();
    const { url, authority } = testbed.cluster;
    proxy = await startTlsProxy(url, authority.cert, authority.issue({ name: 'server', hosts }));
    controller = await startTestController(testbed, { server: proxy.url, isUsual: true });
  });
  after(async () => {
    await controller?.end('SIGTERM');
    await proxy?.stop();
    await testbed?.stop();
  });

  /** Replaces the file at once, as the kubelet does. */
  const trustInPod = (ca: string) => {
    const file = `${accountFolder}/ca.crt`;
    const into = ['--target', String(controller.process.pid), '--user', '--mount', '--preserve-credentials'];
    execFileSync('nsenter', [...into, 'sh', '-ec', `cat >${file}.new; mv ${file}.new ${file}`], { input: ca });
  };

  it('trusts the new one without a restart, and ends its jobs', async () => {
    const running = await testbed.submit((attempt) => (attempt === 1 ? {} : undefined));
    const { metadata } = await testbed.runningPod(running);
    const next = makeAuthority('next');
    trustInPod(next.cert);
    proxy.replaceCertificate(next.issue({ name: 'server', hosts }));
    testbed.kubelet.end(metadata.name, endings.failure(143));
    const ids = [running, await testbed.submit()];
    const ended = await Promise.all(ids.map((id) => testbed.waitUntilEnded(id, 20)));
    expect(ended.map(({ status }) => status)).to.deep.equal(['CompletedJob', 'CompletedJob']);
    expect(await testbed.findProblems(ids)).to.deep.equal([]);
    await testbed.waitUntilEmpty(30);
  });
});
