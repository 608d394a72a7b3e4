import { expect } from 'chai';
import { isWrongSection } from '../../src/media/section-messages.ts';

/** Returns what ffmpeg says of a packet that comes after a later one. */
function back(muxer: string, before: number, now: number): string {
  return `[${muxer} @ 0x55d0c0] Non-monotonous DTS in output stream 0:1; previous: ${before}, current: ${now}; changing to ${before + 1}.\n`;
}

/** [what was fetched, what ffmpeg said, whether it is wrong] */
const sections: [string, string, boolean][] = [
  ['a link about which ffmpeg says nothing', '', false],
  ['an FLV whose times begin anew', back('flv', 10_021, 0), true],
  ['a Matroska whose times begin anew', back('matroska', 10_021, 0), true],
  ['a WebM whose packets are little later than the next ones', back('webm', 4_100, 4_000), false],
  ['an MP4 in pieces whose times begin anew', back('mp4', 480_256, 0), true],
  ['an MP4 in pieces that overlap by 0.1 s', back('mp4', 484_352, 480_256), false],
  ['an M4A in pieces that overlap by 0.1 s', back('ipod', 484_352, 480_256), false],
  ['a link that broke off', 'Stream ends prematurely at 10, should be 20', true],
  ['a link without a length that ended', 'Stream ends prematurely at 10, should be 18446744073709551615', false],
];

describe('isWrongSection', () => {
  for (const [name, said, expected] of sections)
    it(`is ${expected} of ${name}`, () => {
      expect(isWrongSection(said)).to.equal(expected);
    });
});
