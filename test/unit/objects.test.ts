import { expect } from 'chai';
import { isPublic } from '../../src/roles/public-endpoint.ts';

describe('an S3 service', () => {
  for (const [endpoint, wanted] of [
    [null, true],
    ['https://203.0.114.7', true],
    ['http://[2600::1]:9000', true],
    ['http://127.0.0.1:9000', false],
    ['http://10.1.2.3:9000', false],
    ['http://[fd00::1]', false],
    ['https://localhost', false],
    ['http://minio:9000', false],
    ['http://minio.media.svc', false],
    ['http://s3.internal:9000', false],
  ] as const) {
    it(`at ${endpoint ?? 'AWS'} is ${wanted ? 'reached through egress' : 'reached directly'}`, async () => {
      expect(await isPublic(endpoint)).to.equal(wanted);
    });
  }
});
