import { expect } from 'chai';
import fc from 'fast-check';
import { isHeld, readRange } from '../../src/model/byte-range.ts';

const etag = '"abc"';

/** [title, Range, what is read of a file of 100 bytes] */
const ranges: [string, string | undefined, string | [first: number, last: number]][] = [
  ['no Range is the whole file', undefined, 'whole'],
  ['from one byte to another', 'bytes=10-19', [10, 19]],
  ['the first byte alone', 'bytes=0-0', [0, 0]],
  ['from a byte to the end', 'bytes=10-', [10, 99]],
  ['the last bytes', 'bytes=-10', [90, 99]],
  ['more of the last bytes than there are', 'bytes=-1000', [0, 99]],
  ['an end beyond the file is the last byte', 'bytes=10-1000', [10, 99]],
  ['an end beyond every number is the last byte', `bytes=10-${'9'.repeat(400)}`, [10, 99]],
  ['the word may be in capitals', 'BYTES=1-2', [1, 2]],
  ['the last byte alone', 'bytes=99-', [99, 99]],
  ['a beginning beyond the file is unsatisfiable', 'bytes=100-', 'unsatisfiable'],
  ['a beginning beyond every number is unsatisfiable', `bytes=${'9'.repeat(400)}-`, 'unsatisfiable'],
  ['the last no bytes are unsatisfiable', 'bytes=-0', 'unsatisfiable'],
  ['an end before the beginning is the whole file', 'bytes=5-2', 'whole'],
  ['several parts are the whole file', 'bytes=0-0,5-9', 'whole'],
  ['very many parts are the whole file', `bytes=${'0-0,'.repeat(2000)}1-1`, 'whole'],
  ['another unit is the whole file', 'lines=1-2', 'whole'],
  ['letters are the whole file', 'bytes=x-y', 'whole'],
  ['a negative beginning is the whole file', 'bytes=-1-2', 'whole'],
  ['no numbers are the whole file', 'bytes=-', 'whole'],
  ['an empty Range is the whole file', '', 'whole'],
];

describe('a Range', () => {
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

  it('is within the file, whatever is asked for', () => {
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
    ['that is absent holds nothing', undefined, false],
    ['that is empty holds nothing', '', false],
    ['with this file holds it', etag, true],
    ['with this file among others holds it', `"x", W/${etag}`, true],
    ['with other files does not hold it', '"x", "y"', false],
    ['with a star holds any file', '*', true],
  ] as const) {
    it(title, () => {
      expect(isHeld({ 'if-none-match': held }, etag)).to.equal(wanted);
    });
  }
});
