import { expect } from 'chai';
import type { ObjectStore } from '../../src/objects/object-store.ts';
import { openS3 } from '../../src/objects/s3-store.ts';
import { credentials, startS3, type TestS3 } from '../support/s3.ts';

describe('a bucket that cannot be used', function () {
  this.timeout(120_000);
  let s3: TestS3;
  before(async () => {
    s3 = await startS3();
  });
  after(() => s3.stop());

  const open = (): ObjectStore =>
    openS3({ settings: s3.settings, partBytes: 5 * 1024 ** 2, throughEgress: async () => false });

  it('throws unavailable when S3 does not answer for 10 s', async () => {
    const thaw = await s3.freeze();
    const error = await open()
      .see('job/1/media.mp4')
      .catch((error) => error);
    thaw();
    expect([error.code, error.cause.message]).to.deep.equal(['unavailable', 'S3 did not answer in time']);
  });

  it('shows neither key nor signature when S3 refuses a request', async () => {
    process.env.AWS_SECRET_ACCESS_KEY = 'wrong';
    const wrong = open();
    const error = await wrong.remove('job/').catch((error) => error);
    Object.assign(process.env, credentials);
    expect([error.code, error.cause.message]).to.deep.equal(['unavailable', 'S3 answered SignatureDoesNotMatch (403)']);
    const seen = JSON.stringify(error, Object.getOwnPropertyNames(error)) + JSON.stringify(error.cause);
    expect(seen).not.to.match(/AKIA|Signature=|StringToSign/);
  });
});
