import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { makeWorkerGateway } from '../../src/controller/worker-gateway.ts';
import { openListener } from '../../src/roles/socket.ts';
import { openPodIdentity } from '../../src/runners/kubernetes/pod-identity.ts';
import { type AttemptId, attemptNameOf } from '../../src/runners/runner.ts';
import { startAttempt } from '../../src/store/jobs/start-attempt.ts';
import { endings, type Pod } from '../support/cluster/pod.ts';
import { makePodToken, type TokenOptions } from '../support/cluster/pod-token.ts';
import { aShape, makeWorkersNamespace, openTestRunner, type TestRunner } from '../support/cluster/runner.ts';
import { namespace, startTestbed, type Testbed } from '../support/cluster/testbed.ts';
import { makeWorkerPod } from '../support/cluster/worker-namespace.ts';
import { holder, lead, takeJob } from '../support/record.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const cookies = 'canary-of-the-cookies';

describe('the identity of a worker in a cluster', () => {
  let testbed: Testbed;
  let runner: TestRunner;
  let identify: (token: string) => Promise<AttemptId | null>;
  const { log } = aLog();

  before(async () => {
    // Pods run until they are stopped: the token of one that has ended is refused.
    testbed = await startTestbed({ planOf: () => ({}) });
    runner = await openTestRunner({ cluster: testbed.cluster, namespace, log });
    identify = openPodIdentity({
      client: runner.client,
      state: runner.state,
      shape: aShape(namespace),
      clocks: [Date.now],
    });
  });
  after(async () => {
    await runner?.close();
    await testbed?.stop();
  });

  const ask: Testbed['cluster']['admin']['ask'] = (...words) => testbed.cluster.admin.ask(...words);
  const started = async (jobId: string = randomUUID()) => {
    const name = attemptNameOf(jobId, 1);
    await runner.start({ name, jobId, attempt: 1, maxMs: 600_000 });
    return { jobId, name, pod: await testbed.runningPod(jobId) };
  };

  const tokenOf = (pod: Pod, wanted?: TokenOptions) => makePodToken(testbed.cluster, pod, wanted);

  it('accepts the token of a pod for its own attempt and no other', async () => {
    const [one, other] = [await started(), await started()];
    expect(await identify(await tokenOf(one.pod))).to.deep.equal({ jobId: one.jobId, attempt: 1 });
    expect(await identify(await tokenOf(other.pod))).to.deep.equal({ jobId: other.jobId, attempt: 1 });
  });

  it('accepts a token before the watch has shown the pod', async () => {
    const { jobId, pod } = await started();
    const early = openPodIdentity({
      client: runner.client,
      state: { pod: () => null },
      shape: aShape(namespace),
      clocks: [Date.now],
    });
    expect(await early(await tokenOf(pod))).to.deep.equal({ jobId, attempt: 1 });
  });

  it('accepts the token of a pod while the clock of Redis is a day ahead or behind, and none that does not hold by both clocks', async () => {
    const { jobId, pod } = await started();
    const token = await tokenOf(pod);
    const day = 86_400_000;
    for (const wrongMs of [day, -day]) {
      const wrong = () => Date.now() + wrongMs;
      const by = (...clocks: (() => number)[]) =>
        openPodIdentity({ client: runner.client, state: runner.state, shape: aShape(namespace), clocks })(token);
      expect(await by(wrong, Date.now), `by ${wrongMs} ms`).to.deep.equal({ jobId, attempt: 1 });
      expect(await by(wrong, wrong), `both by ${wrongMs} ms`).to.equal(null);
    }
  });

  it('accepts a token that a cluster has just made whose clock is less than a minute ahead, and refuses it when that is more', async () => {
    const { jobId, pod } = await started();
    const byClockBehind = async (seconds: number) => {
      const clocks = [() => Date.now() - seconds * 1000];
      const parts = { client: runner.client, state: runner.state, shape: aShape(namespace), clocks };
      return openPodIdentity(parts)(await tokenOf(pod));
    };
    expect(await byClockBehind(30)).to.deep.equal({ jobId, attempt: 1 });
    expect(await byClockBehind(90)).to.equal(null);
  });

  it('refuses a token with another audience, of another account or of no pod', async () => {
    const { pod } = await started();
    for (const wanted of [{ audiences: ['https://kubernetes.default.svc'] }, { isBound: false }]) {
      expect(await identify(await tokenOf(pod, wanted)), JSON.stringify(wanted)).to.equal(null);
    }
    const shape = { ...aShape(namespace), serviceAccount: 'another' };
    const ofAnother = openPodIdentity({ client: runner.client, state: runner.state, shape, clocks: [Date.now] });
    expect(await ofAnother(await tokenOf(pod))).to.equal(null);
  });

  it('refuses the token of a pod that is no worker, or of another namespace', async () => {
    await ask('POST', `/api/v1/namespaces/${namespace}/pods`, bare('no-worker'));
    const own: Pod = await ask('GET', `/api/v1/namespaces/${namespace}/pods/no-worker`);
    expect(await identify(await tokenOf(own))).to.equal(null);
    await makeWorkersNamespace(testbed.cluster, 'elsewhere');
    await ask('POST', '/api/v1/namespaces/elsewhere/pods', bare('away'));
    const away: Pod = await ask('GET', '/api/v1/namespaces/elsewhere/pods/away');
    expect(await identify(await tokenOf(away, { in: 'elsewhere' }))).to.equal(null);
  });

  it('refuses a changed token and a text that is no token', async () => {
    const { pod } = await started();
    const [head = '', body = '', signature = ''] = (await tokenOf(pod)).split('.');
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString());
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const unsigned = encode({ alg: 'none', typ: 'JWT' });
    const other = encode({ ...claims, exp: claims.exp + 1 });
    const unknownKey = encode({ ...JSON.parse(Buffer.from(head, 'base64url').toString()), kid: 'unknown' });
    for (const token of [
      `${head}.${other}.${signature}`,
      `${unsigned}.${body}.`,
      `${unknownKey}.${body}.${signature}`,
      `${head}.${body}.${signature.slice(0, -4)}AAAA`,
      `${randomUUID()}.1.${signature.slice(0, 40)}`,
      'x',
    ]) {
      expect(await identify(token), token.slice(0, 40)).to.equal(null);
    }
  });

  it('refuses the token of a pod that has ended or is gone', async () => {
    const [ended, gone] = [await started(), await started()];
    const tokens = [await tokenOf(ended.pod), await tokenOf(gone.pod)] as const;
    testbed.kubelet.end(ended.pod.metadata.name, endings.success());
    await runner.stop(gone.name);
    await until(async () => (await identify(tokens[0])) === null, 10, 'the end of the pod is known');
    await until(async () => (await identify(tokens[1])) === null, 10, 'the pod is known to have gone');
  });

  it('gives a worker its own job through the gateway, and nothing to others', async () => {
    const { store, objects } = testbed;
    const limits = { maxFileBytes: 1_000, maxAttemptMs: 7_200_000, inspectSeconds: 10 };
    const gateway = makeWorkerGateway({
      store,
      objects,
      log,
      attemptOf: identify,
      cookiesOf: async () => cookies,
      ...limits,
    });
    const close = await openListener(gateway, { host: '127.0.0.1', port: 0 });
    const { port } = gateway.address() as AddressInfo;
    const get = (token: string) =>
      fetch(`http://127.0.0.1:${port}/v1/attempt`, { headers: { authorization: `Bearer ${token}` } });
    await lead(store, holder);
    const id = await testbed.submit(() => ({}));
    expect(await takeJob(store, holder, 100)).to.equal(id);
    await startAttempt(store, holder, { id }, 1);
    const { pod } = await started(id);
    const token = await tokenOf(pod);
    const answer = await get(token);
    expect(answer.status).to.equal(200);
    expect(await answer.json()).to.include({ job: id, attempt: 1, endpoint: 'video', cookies });
    for (const kind of [
      '/api/v1/pods',
      '/apis/batch/v1/jobs',
      '/api/v1/events',
      '/api/v1/secrets',
      '/api/v1/configmaps',
    ]) {
      expect(JSON.stringify(await ask('GET', kind)), kind).to.not.include(cookies);
    }
    const stranger = await started();
    expect((await get(await tokenOf(stranger.pod))).status).to.equal(410);
    expect((await get('x')).status).to.equal(401);
    await runner.stop(attemptNameOf(id, 1));
    await until(async () => (await get(token)).status === 401, 10, 'the token of a stopped worker is refused');
    await close();
  });

  it('gives workers a token that the API server itself refuses', async () => {
    const { pod } = await started();
    const token = await tokenOf(pod);
    const { url } = testbed.cluster;
    const review = { spec: { token } };
    const { status } = await ask('POST', '/apis/authentication.k8s.io/v1/tokenreviews', review);
    expect(status.authenticated ?? false, url).to.equal(false);
  });
});

/** A pod like those of workers that no Job of ours made. */
function bare(name: string): object {
  return makeWorkerPod(name, aShape(namespace));
}
