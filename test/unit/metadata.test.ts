import { expect } from 'chai';
import { maxStringLength, maxUrlLength, metadataFields, readMetadata } from '../../src/model/metadata.ts';

const names = Object.keys(metadataFields);
const whole = {
  id: 'abc',
  ext: 'mp4',
  title: 'A film',
  width: 1920,
  height: 1080,
  channel: 'Someone',
  channel_url: 'https://example.com/someone',
  is_live: false,
  was_live: true,
  live_status: 'was_live',
  duration: 12.5,
  extractor: 'example',
  thumbnail: 'http://example.com/a.jpg',
  like_count: 0,
  view_count: 7,
  description: 'Two lines:\n\tlike this.',
  upload_date: 20260102,
  webpage_url: 'https://example.com/film',
  original_url: 'https://example.com/f?a=1#b',
};

describe('readMetadata', () => {
  it('metadata-fields metadata-upload_date: keeps all 19 fields, in the order of the contract', () => {
    const read = readMetadata(whole);
    expect(read).to.deep.equal(whole);
    expect(Object.keys(read ?? {})).to.deep.equal(Object.keys(whole));
  });

  it('D26: fills what is missing with null and drops what is unknown', () => {
    const nothing = Object.fromEntries(names.map((name) => [name, null]));
    expect(readMetadata({ formats: [1], uploader: 'x' })).to.deep.equal(nothing);
    expect(readMetadata({ toString: 'x', id: undefined })).to.deep.equal(nothing);
  });

  for (const json of [null, undefined, 'text', 7, true, [], [whole]]) {
    it(`${JSON.stringify(json)?.slice(0, 20)} is no metadata`, () => {
      expect(readMetadata(json)).to.equal(null);
    });
  }

  const refused: [keyof typeof metadataFields, unknown[]][] = [
    ['id', [7, true, ['a'], {}]],
    ['width', ['1920', 1.5, -1, 2 ** 53, Number.NaN, true]],
    ['duration', ['12', -0.5, Number.POSITIVE_INFINITY, Number.NaN]],
    ['is_live', [0, 1, 'true', {}]],
    ['live_status', ['LIVE', '', 'toString', 1, true]],
    [
      'channel_url',
      ['example.com', 'javascript:alert(1)', 'data:text/html,x', 'https://', 'https://a b/', 'https://a/\n', 7],
    ],
    ['thumbnail', [`https://example.com/${'a'.repeat(maxUrlLength)}`]],
  ];
  for (const [name, values] of refused) {
    for (const value of values) {
      it(`${name} ${String(JSON.stringify(value) ?? value).slice(0, 40)} is null`, () => {
        expect(readMetadata({ ...whole, [name]: value })).to.deep.equal({ ...whole, [name]: null });
      });
    }
  }

  const longUrl = `https://example.com/${'a'.repeat(maxUrlLength - 20)}`;
  const kept: [keyof typeof metadataFields, unknown][] = [
    ['duration', 0],
    ['thumbnail', longUrl],
    ['webpage_url', 'HTTPS://Example.com/ü?a=1'],
    ['live_status', 'post_live'],
  ];
  for (const [name, value] of kept) {
    it(`${name} ${String(value).slice(0, 40)} is kept`, () => {
      expect(readMetadata({ ...whole, [name]: value })).to.deep.equal({ ...whole, [name]: value });
    });
  }

  const strings: [string, string, string][] = [
    ['a long string is cut', 'a'.repeat(maxStringLength + 1), 'a'.repeat(maxStringLength)],
    ['control characters are removed, line ends and tabs stay', 'a\0b\u001b[1m\u0085\u007f\n\tc', 'ab[1m\n\tc'],
    [
      'half a character at the end becomes a replacement',
      `${'a'.repeat(maxStringLength - 1)}😀`,
      `${'a'.repeat(maxStringLength - 1)}\ufffd`,
    ],
    ['other scripts stay as they are', 'Ünïcödé 日本語 👨‍👩‍👧', 'Ünïcödé 日本語 👨‍👩‍👧'],
  ];
  for (const [title, given, wanted] of strings) {
    it(title, () => {
      expect(readMetadata({ description: given })?.description).to.equal(wanted);
    });
  }
});
