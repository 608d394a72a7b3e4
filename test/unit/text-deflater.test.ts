import { createHash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { expect } from 'chai';
import { keepDeflater } from '../../src/store/jobs/text-deflater.ts';

const dictionary = Buffer.from('a text that comes often, and another one');
const options = { level: 9, windowBits: 13, memLevel: 6, dictionary } as const;

/** The same in every run: of random ones, one in thousands is deflated to other bytes of the same text. */
const bytesWithoutPattern = (outputLength: number) =>
  createHash('shake256', { outputLength }).update('no pattern').digest();

/** Letters without a pattern cannot be deflated to less than 3/4. */
const texts = {
  'no text': '',
  'one letter': 'é',
  'a text of the dictionary': 'another one',
  'a long text that repeats itself': 'again and again, '.repeat(5_000),
  'a long text that hardly gets shorter': bytesWithoutPattern(60_000).toString('base64'),
  'a text of signs beyond one byte': String.fromCodePoint(
    ...bytesWithoutPattern(20_000).map((byte) => byte + 1),
  ).repeat(2),
};

describe('a kept deflater', () => {
  const deflate = keepDeflater(options);

  for (const [what, text] of Object.entries(texts))
    it(`deflates ${what} as a stream of its own does, the first time and after each other text`, () => {
      const expected = deflateRawSync(text, options);
      for (const other of ['', ...Object.values(texts)]) {
        deflate(other);
        const packed = deflate(text);
        expect(packed.equals(expected)).to.equal(true);
        expect(inflateRawSync(packed, { dictionary }).toString()).to.equal(text);
      }
    });

  it('gives texts that later ones do not overwrite', () => {
    const first = deflate('the first text');
    deflate('x'.repeat(100));
    expect(inflateRawSync(first, { dictionary }).toString()).to.equal('the first text');
  });
});
