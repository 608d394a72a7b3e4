import { expect } from 'chai';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { tokenAudience } from '../../src/runners/kubernetes/job-manifest.ts';
import { openPodIdentity } from '../../src/runners/kubernetes/pod-identity.ts';
import { readPodSnapshot } from '../../src/runners/kubernetes/snapshot.ts';
import { attemptNumberOf, jobIdOf } from '../../src/runners/runner.ts';
import { aRawPod, attemptName } from '../support/cluster-objects.ts';
import { until } from '../support/until.ts';

describe('the identity of a worker by the token of its pod', () => {
  const pod = readPodSnapshot(aRawPod());
  const own = { jobId: jobIdOf(attemptName), attempt: attemptNumberOf(attemptName) };
  let issuer: string;
  let reads: number;
  let isAway: boolean;
  let tokenOf: (issuer: string, uid?: string) => Promise<string>;
  let open: (minKeysAgeMs?: number) => ReturnType<typeof openPodIdentity>;

  beforeEach(async () => {
    const { publicKey, privateKey } = await generateKeyPair('RS256');
    const published = { keys: [{ ...(await exportJWK(publicKey)), kid: 'one', alg: 'RS256' }] };
    issuer = 'https://old.test';
    reads = 0;
    isAway = false;
    const ask = async <T>(_: string, path: string) => {
      if (isAway) throw new Error('the API server is away');
      if (path.endsWith(`/pods/${pod.name}`)) return aRawPod() as T;
      if (!path.endsWith('/openid-configuration')) return published as T;
      reads++;
      return { issuer } as T;
    };
    open = (minKeysAgeMs = 0) =>
      openPodIdentity({
        ...{ client: { ask }, state: { pod: () => pod }, clocks: [Date.now], minKeysAgeMs },
        shape: { namespace: 'workers', serviceAccount: 'trawl-worker' },
      });
    tokenOf = (by, uid = pod.uid) =>
      new SignJWT({ 'kubernetes.io': { namespace: 'workers', pod: { name: pod.name, uid } } })
        .setProtectedHeader({ alg: 'RS256', kid: 'one' })
        .setIssuer(by)
        .setSubject('system:serviceaccount:workers:trawl-worker')
        .setAudience(tokenAudience)
        .setIssuedAt()
        .setExpirationTime('1h')
        .sign(privateKey);
  });

  it('accepts the tokens of a new issuer of the cluster, and those of the one before', async () => {
    const identify = open();
    const before = await tokenOf(issuer);
    expect(await identify(before)).to.deep.equal(own);
    issuer = 'https://new.test';
    expect(await identify(await tokenOf(issuer))).to.deep.equal(own);
    expect(await identify(before)).to.deep.equal(own);
  });

  it('accepts the tokens of a new issuer that workers send at the same moment', async () => {
    const minKeysAgeMs = 20;
    const identify = open(minKeysAgeMs);
    expect(await identify(await tokenOf(issuer))).to.deep.equal(own);
    const readAt = performance.now();
    await until(() => performance.now() - readAt > minKeysAgeMs, 5, 'the issuer may be read again');
    issuer = 'https://new.test';
    const tokens = await Promise.all([1, 2, 3].map(() => tokenOf(issuer)));
    expect(await Promise.all(tokens.map(identify))).to.deep.equal([own, own, own]);
    expect(reads).to.equal(2);
  });

  it('refuses the token of an issuer that the cluster never named, and asks for its issuer again at most every 10 s', async () => {
    const identify = open(10_000);
    const foreign = await tokenOf('https://foreign.test');
    for (let n = 0; n < 3; n++) expect(await identify(foreign)).to.equal(null);
    expect(reads).to.equal(1);
  });

  it('refuses the token of a pod whose name another one has now', async () => {
    expect(await open()(await tokenOf(issuer, 'the uid of the earlier pod'))).to.equal(null);
  });

  it('reads the keys of the cluster again after they could not be read', async () => {
    const identify = open();
    const token = await tokenOf(issuer);
    isAway = true;
    expect(await identify(token).catch(({ message }) => message)).to.equal('the API server is away');
    isAway = false;
    expect(await identify(token)).to.deep.equal(own);
  });
});
