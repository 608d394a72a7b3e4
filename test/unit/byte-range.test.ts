import { expect } from 'chai';
import fc from 'fast-check';
import { isHeld, readRange } from '../../src/model/byte-range.ts';

const etag = '"abc"';

/** [title, Range, what is read of a file of 100 bytes] */
const ranges: [string, string | undefined, string | [first: number, last: number]][] = [
  ['that is absent selects the whole file', undefined, 'whole'],
  ['with two positions selects the bytes from one to the other', 'bytes=10-19', [10, 19]],
  ['of the first byte alone selects one byte', 'bytes=0-0', [0, 0]],
  ['without an end selects the rest of the file', 'bytes=10-', [10, 99]],
  ['without a beginning selects the last bytes', 'bytes=-10', [90, 99]],
  ['of more last bytes than the file has selects all of them', 'bytes=-1000', [0, 99]],
  ['with an end beyond the file ends at the last byte', 'bytes=10-1000', [10, 99]],
  ['with an end beyond every number ends at the last byte', `bytes=10-${'9'.repeat(400)}`, [10, 99]],
  ['with its unit in capitals is read', 'BYTES=1-2', [1, 2]],
  ['of the last byte alone selects one byte', 'bytes=99-', [99, 99]],
  ['with a beginning beyond the file is unsatisfiable', 'bytes=100-', 'unsatisfiable'],
  ['with a beginning beyond every number is unsatisfiable', `bytes=${'9'.repeat(400)}-`, 'unsatisfiable'],
  ['of the last 0 bytes is unsatisfiable', 'bytes=-0', 'unsatisfiable'],
  ['with an end before its beginning selects the whole file', 'bytes=5-2', 'whole'],
  ['of several parts selects the whole file', 'bytes=0-0,5-9', 'whole'],
  ['of very many parts selects the whole file', `bytes=${'0-0,'.repeat(2000)}1-1`, 'whole'],
  ['of another unit selects the whole file', 'lines=1-2', 'whole'],
  ['of a unit that only ends as bytes do selects the whole file', 'kilobytes=1-2', 'whole'],
  ['of letters selects the whole file', 'bytes=x-y', 'whole'],
  ['with a negative beginning selects the whole file', 'bytes=-1-2', 'whole'],
  ['without numbers selects the whole file', 'bytes=-', 'whole'],
  ['that is empty selects the whole file', '', 'whole'],
];

describe('a Range header', () => {
  for (const [title, range, wanted] of ranges) {
    it(title, () => {
      const read = readRange({ range }, 100, etag);
      expect(typeof read === 'string' ? read : [read.first, read.last]).to.deep.equal(wanted);
    });
  }

  for (const [title, condition, wanted] of [
    ['holds when If-Range names this file', etag, { first: 1, last: 2 }],
    ['is ignored when If-Range names another file', '"abd"', 'whole'],
    ['is ignored when If-Range is weak, as RFC 9110 wants it', `W/${etag}`, 'whole'],
    ['is ignored when If-Range is a time', 'Wed, 21 Oct 2026 07:28:00 GMT', 'whole'],
  ] as const) {
    it(title, () => {
      expect(readRange({ range: 'bytes=1-2', 'if-range': condition }, 100, etag)).to.deep.equal(wanted);
    });
  }

  it('never selects a byte outside the file', () => {
    const number = fc.oneof(fc.nat().map(String), fc.constant(''));
    fc.assert(
      fc.property(number, number, fc.integer({ min: 1 }), (first, last, bytes) => {
        const read = readRange({ range: `bytes=${first}-${last}` }, bytes, etag);
        if (typeof read === 'string') return;
        expect(read.first).to.be.within(0, read.last);
        expect(read.last).to.be.below(bytes);
      }),
    );
  });
});

describe('If-None-Match', () => {
  for (const [title, held, wanted] of [
    ['that is absent matches nothing', undefined, false],
    ['that is empty matches nothing', '', false],
    ['with the ETag of the file matches it', etag, true],
    ['with the ETag of the file among others matches it, also a weak one', `"x", W/${etag}`, true],
    ['with other ETags does not match the file', '"x", "y"', false],
    ['with a star matches any file', '*', true],
  ] as const) {
    it(title, () => {
      expect(isHeld({ 'if-none-match': held }, etag)).to.equal(wanted);
    });
  }
});
