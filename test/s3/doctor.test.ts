import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DeleteBucketPolicyCommand, DeleteObjectCommand, PutBucketPolicyCommand } from '@aws-sdk/client-s3';
import { expect } from 'chai';
import { checkBucket } from '../../src/admin/check-bucket.ts';
import { openS3 } from '../../src/objects/s3-store.ts';
import type { Json } from '../support/json.ts';
import { type Operator, startOperator } from '../support/operator.ts';
import { credentials, startS3, type TestS3 } from '../support/s3.ts';
import { startSilentPort } from '../support/silent-port.ts';
import { read } from '../support/tree.ts';

describe('the doctor beside a bucket', () => {
  let s3: TestS3;
  let operator: Operator;
  before(async () => {
    s3 = await startS3();
    operator = await startOperator();
  });
  after(async () => {
    await operator.stop();
    await s3.stop();
  });
  afterEach(async () => expect(await s3.list()).to.deep.equal({ objects: [], uploads: [] }));

  it('reports a bucket that can be written, read and cleared, and leaves nothing in it', async () => {
    const { out } = await operator.doctor([], s3.env);
    expect(out).to.match(/^ok +bucket +The bucket trawl-test can be written, read and cleared\.$/m);
  });

  it('reports no bucket when files are kept in a folder', async () => {
    expect((await operator.doctor([])).out).not.to.contain('bucket');
  });

  for (const [title, change, text] of [
    [
      'a bucket that is not there',
      { s3Bucket: 'trawl-none' },
      /trawl-none cannot be written: S3 answered NoSuchBucket/,
    ],
    ['a service that is not there', { s3Endpoint: 'http://127.0.0.1:1' }, /cannot be written: .*ECONNREFUSED/],
    [
      'a service that callers do not reach',
      { s3PublicEndpoint: 'http://[::1]:65535' },
      /cannot be read: .*ECONNREFUSED/,
    ],
  ] as const) {
    it(`names the problem of ${title}`, async () => {
      const { level, text: said } = await checkBucket({ ...s3.settings, ...change });
      expect(level).to.equal('problem');
      expect(said).to.match(text).and.match(/\.$/);
    });
  }

  for (const address of ['http://127.0.0.1:1', 'http://[::1]:1', 'http://localhost:1']) {
    it(`reads at the endpoint of the cluster where callers have a port-forward to ${address}`, async () => {
      const settings = { ...s3.settings, s3PublicEndpoint: address };
      const { level, text } = await checkBucket(settings, { isInCluster: true });
      expect({ level, text }).to.deep.equal({
        level: 'note',
        text: `The bucket trawl-test can be written, read and cleared. Links begin with ${address}: only a machine with a port-forward there gets files.`,
      });
      expect((await checkBucket({ ...settings, s3Bucket: 'trawl-none' }, { isInCluster: true })).level).to.equal(
        'problem',
      );
    });
  }

  it('reads at the endpoint of the cluster where network policies close the one of callers to the pod', async () => {
    const closed = await startSilentPort();
    // Another name of the loopback address, for which no port-forward is meant.
    const address = closed.url.replace('127.0.0.1', '0.0.0.0');
    try {
      const there = { ...s3.settings, s3PublicEndpoint: address };
      expect((await checkBucket(there, { isInCluster: true })).level).to.equal('problem');
      const { level, text } = await checkBucket(there, { isInCluster: true, hasPolicies: true });
      expect({ level, text }).to.deep.equal({
        level: 'note',
        text: `The bucket trawl-test can be written, read and cleared. This pod hears nothing from ${address}, where callers get files: networkPolicy.s3 may leave it out.`,
      });
    } finally {
      await closed.stop();
    }
  });

  it('names the problem of a public endpoint of a cluster that nobody serves', async () => {
    const { level, text } = await checkBucket(
      { ...s3.settings, s3PublicEndpoint: 'http://0.0.0.0:65535' },
      { isInCluster: true, hasPolicies: true },
    );
    expect(level).to.equal('problem');
    expect(text).to.match(/cannot be read: .*ECONNREFUSED/);
  });

  it('reports a service that overwrites an object in spite of If-None-Match', async () => {
    const { s3Endpoint, s3Bucket } = s3.settings;
    // Deleting just before the write has the same effect as not knowing the condition.
    const careless = createServer(async (req, res) => {
      const { pathname } = new URL(req.url ?? '', s3Endpoint);
      const Key = pathname.replace(`/${s3Bucket}/`, '');
      if (req.headers['if-none-match']) await s3.client.send(new DeleteObjectCommand({ Bucket: s3Bucket, Key }));
      const on = request(s3Endpoint + req.url, { method: req.method, headers: req.headers });
      on.on('response', (answer) => {
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(res);
      });
      req.pipe(on);
    });
    await once(careless.listen(0, '127.0.0.1'), 'listening');
    const { port } = careless.address() as AddressInfo;
    const finding = await checkBucket({ ...s3.settings, s3Endpoint: `http://127.0.0.1:${port}` });
    careless.closeAllConnections();
    careless.close();
    expect(finding).to.deep.include({
      level: 'problem',
      text: 'The bucket trawl-test cannot be kept as it is: it overwrites what is there although If-None-Match forbids that. docs/s3.md says what it needs.',
    });
  });

  it('finds nothing wrong with the rights of docs/s3.md, and a problem where one of them is missing', async () => {
    const [, written = ''] = /```json\n([\s\S]*?)```/.exec(read('docs/s3.md')) ?? [];
    const policy: Json = JSON.parse(written.replaceAll('BUCKET', s3.settings.s3Bucket));
    const bucket = { Bucket: s3.settings.s3Bucket };
    const user = await s3.addUser('limited', 'user');
    const judge = async (missing: string) => {
      const Statement = policy.Statement.map((one: Json) => ({
        ...{ ...one, Principal: { AWS: [user.AWS_ACCESS_KEY_ID] } },
        Action: one.Action.filter((action: string) => action !== missing),
      }));
      await s3.client.send(new PutBucketPolicyCommand({ ...bucket, Policy: JSON.stringify({ ...policy, Statement }) }));
      Object.assign(process.env, user);
      const { level } = await checkBucket(s3.settings).finally(() => Object.assign(process.env, credentials));
      return level;
    };
    const actions: string[] = policy.Statement.flatMap((one: Json) => one.Action);
    expect(actions).to.have.length(7);
    try {
      expect(await judge('')).to.equal('ok');
      for (const missing of actions) expect(await judge(missing), missing).to.equal('problem');
    } finally {
      await s3.client.send(new DeleteBucketPolicyCommand(bucket));
      await s3.removeUser('limited');
      await openS3({ settings: s3.settings, partBytes: 0, throughEgress: async () => false }).remove('doctor/');
    }
  });

  it('reports wrong credentials without showing them', async () => {
    process.env.AWS_SECRET_ACCESS_KEY = 'wrong';
    const { text } = await checkBucket(s3.settings).finally(() => Object.assign(process.env, credentials));
    expect(text).to.equal(
      'The bucket trawl-test cannot be written: S3 answered SignatureDoesNotMatch (403). docs/s3.md says what it needs.',
    );
  });
});
