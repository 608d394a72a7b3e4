import { expect } from 'chai';
import { judgeBucket } from '../../src/admin/bucket.ts';
import { type Operator, startOperator } from '../support/operator.ts';
import { credentials, startS3, type TestS3 } from '../support/s3.ts';

describe('the doctor beside a bucket', function () {
  this.timeout(20_000);
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

  it('says that it can be written, read and cleared, and leaves nothing there', async () => {
    const { out } = await operator.doctor([], s3.env);
    expect(out).to.match(/^ok +bucket +The bucket trawl-test can be written, read and cleared\.$/m);
  });

  it('says nothing of a bucket where files are kept in a folder', async () => {
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
    it(`says what is the matter with ${title}`, async () => {
      const { level, text: said } = await judgeBucket({ ...s3.settings, ...change });
      expect(level).to.equal('problem');
      expect(said).to.match(text).and.match(/\.$/);
    });
  }

  it('says that credentials are wrong, and does not tell them', async () => {
    process.env.AWS_SECRET_ACCESS_KEY = 'wrong';
    const { text } = await judgeBucket(s3.settings).finally(() => Object.assign(process.env, credentials));
    expect(text).to.equal('The bucket trawl-test cannot be written: S3 answered SignatureDoesNotMatch (403).');
  });
});
