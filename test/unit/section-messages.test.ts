import { expect } from 'chai';
import { isBrokenOff, isSqueezed } from '../../src/media/section-messages.ts';

/** Returns what ffmpeg says of a packet that comes after a later one, up to version 6.0 and from then on. */
function back(muxer: string, before: number, now: number): string[] {
  const told = `previous: ${before}, current: ${now}; changing to ${before + 1}.`;
  return [
    `[${muxer} @ 0x55d0c0] Non-monotonous DTS in output stream 0:1; ${told}\n`,
    `[aost#0:1/copy @ 0x55d0c0] Non-monotonic DTS; ${told}\n`,
  ];
}

const [mp4, matroska] = ['mov,mp4,m4a,3gp,3g2,mj2', 'matroska,webm'];

/** [what was fetched, its format, what ffmpeg said, whether it is wrong] */
const sections: [string, string, string[], boolean][] = [
  ['a link about which ffmpeg says nothing', mp4, [''], false],
  ['an FLV whose times begin anew', 'flv', back('flv', 10_021, 0), true],
  ['a Matroska whose times begin anew', matroska, back('matroska', 10_021, 0), true],
  ['a WebM whose packets are little later than the next ones', matroska, back('webm', 4_100, 4_000), false],
  ['an MP4 in pieces whose times begin anew', mp4, back('mp4', 480_256, 0), true],
  ['an MP4 in pieces that overlap by 0.1 s', mp4, back('mp4', 484_352, 480_256), false],
  ['an M4A in pieces that overlap by 0.1 s', mp4, back('ipod', 484_352, 480_256), false],
  ['a transport stream whose clock begins anew', 'mpegts', back('mpegts', 900_000, 0), false],
];

describe('isSqueezed', () => {
  for (const [name, format, said, expected] of sections)
    it(`is ${expected} of ${name}, whichever version of ffmpeg tells it`, () => {
      for (const text of said) expect(isSqueezed(text, format), text).to.equal(expected);
    });
});

describe('isBrokenOff', () => {
  it('is true of a link that ends before its length, and false of one without a length', () => {
    expect(isBrokenOff('Stream ends prematurely at 10, should be 20')).to.equal(true);
    expect(isBrokenOff('Stream ends prematurely at 10, should be 18446744073709551615')).to.equal(false);
    expect(isBrokenOff('')).to.equal(false);
  });
});
