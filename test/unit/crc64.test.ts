import { expect } from 'chai';
import fc from 'fast-check';
import { crc64 } from '../../src/store/backup/crc64.ts';
import { plainCrc64 } from '../support/plain-crc64.ts';

for (const [title, sum] of Object.entries({ 'in halves': crc64, 'as one number': plainCrc64 })) {
  describe(`the CRC-64 of Redis, ${title}`, () => {
    it('of 123456789 is the one in its source', () => {
      expect(sum(Buffer.from('123456789'))).to.deep.equal({ high: 0xe9c6d914, low: 0xc4b8d9ca });
    });

    it('of nothing is 0', () => {
      expect(sum(Buffer.alloc(0))).to.deep.equal({ high: 0, low: 0 });
    });
  });
}

describe('the CRC-64 of Redis', () => {
  it('is the same both ways', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(crc64(bytes)).to.deep.equal(plainCrc64(bytes));
      }),
    );
  });
});
