import { expect } from 'chai';
import { clientNames, startClientDriver } from '../support/client-driver.ts';
import { startS3, type TestS3 } from '../support/s3.ts';
import { makeService, type Service } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';

describe('the clients of callers, where files are kept in S3', () => {
  let s3: TestS3;
  let source: Source;
  let service: Service;
  before(async () => {
    [s3, source] = await Promise.all([startS3(), startSource()]);
    service = makeService(s3.env);
    await service.start();
  });
  after(async () => {
    await service?.close();
    await source?.stop();
    await s3?.stop();
  });

  for (const name of clientNames) {
    it(`a download brings the file of the bucket, in ${name}`, async () => {
      const driver = startClientDriver(name);
      try {
        const { key } = await service.aCustomer();
        const access = { url: service.up().url, key, patienceSeconds: 20 };
        const url = `${source.url}/films/clip.mp4`;
        const { value, error } = await driver.run({ verb: 'download', url, service: access });
        expect(error).to.equal(undefined);
        const { sha256, bytes } = value as { sha256: string; bytes: string };
        expect(bytes).to.equal(sha256);
      } finally {
        await driver.stop();
      }
    });
  }
});
