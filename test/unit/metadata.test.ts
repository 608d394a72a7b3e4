import { expect } from 'chai';
import { metadataFields, readMetadata, shortenMetadata } from '../../src/model/metadata.ts';

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
    it(`returns null for ${JSON.stringify(json)?.slice(0, 20)}`, () => {
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
    ['thumbnail', [`https://example.com/${'a'.repeat(4_077)}`, 'view-source:https://example.com/a.jpg']],
  ];
  for (const [name, values] of refused) {
    for (const value of values) {
      it(`turns the ${name} ${String(JSON.stringify(value) ?? value).slice(0, 40)} into null`, () => {
        expect(readMetadata({ ...whole, [name]: value })).to.deep.equal({ ...whole, [name]: null });
      });
    }
  }

  const longUrl = `https://example.com/${'a'.repeat(4_076)}`;
  const kept: [keyof typeof metadataFields, unknown][] = [
    ['duration', 0],
    ['thumbnail', longUrl],
    ['webpage_url', 'HTTPS://Example.com/ü?a=1'],
    ['live_status', 'post_live'],
  ];
  for (const [name, value] of kept) {
    it(`keeps the ${name} ${String(value).slice(0, 40)}`, () => {
      expect(readMetadata({ ...whole, [name]: value })).to.deep.equal({ ...whole, [name]: value });
    });
  }

  const strings: [string, string, string][] = [
    ['cuts a long string', 'a'.repeat(10_001), 'a'.repeat(10_000)],
    ['removes control characters and keeps line ends and tabs', 'a\0b\u001b[1m\u0085\u007f\n\tc', 'ab[1m\n\tc'],
    ['replaces half a surrogate pair at the end', `${'a'.repeat(9_999)}😀`, `${'a'.repeat(9_999)}\ufffd`],
    ['keeps other scripts', 'Ünïcödé 日本語 👨‍👩‍👧', 'Ünïcödé 日本語 👨‍👩‍👧'],
  ];
  for (const [title, given, wanted] of strings) {
    it(title, () => {
      expect(readMetadata({ description: given })?.description).to.equal(wanted);
    });
  }
});

describe('shortenMetadata', () => {
  const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
  const shorten = (given: object) => {
    const read = readMetadata({ ...whole, ...given });
    if (read === null) throw new Error('this is no metadata');
    return { read, kept: shortenMetadata(read) };
  };
  const chinese = '\u7535'.repeat(10_000);

  it('keeps what fits as it is', () => {
    const { read, kept } = shorten({ description: 'x'.repeat(10_000), title: 'y'.repeat(5_000) });
    expect(kept).to.deep.equal(read);
  });

  it('shortens the longest text alone while that is enough', () => {
    const { read, kept } = shorten({ description: chinese, title: 'y'.repeat(3_000) });
    expect(kept).to.deep.equal({ ...read, description: kept.description });
    expect(chinese.startsWith(kept.description ?? '')).to.equal(true);
    expect(bytesOf(kept)).to.be.within(15_998, 16_000);
  });

  it('shortens texts that are equally long to the same length, and quickly', () => {
    const names = ['id', 'ext', 'title', 'channel', 'extractor', 'description'] as const;
    const { kept } = shorten(Object.fromEntries(names.map((name) => [name, chinese])));
    expect(new Set(names.map((name) => kept[name]?.length)).size).to.equal(1);
    expect(bytesOf(kept)).to.be.within(15_982, 16_000);
    expect(kept.webpage_url).to.equal(whole.webpage_url);
  });

  it('cuts no character in half', () => {
    for (const start of ['', 'a', 'ab', 'abc']) {
      const { description } = shorten({ description: start + '\u{1f3ac}'.repeat(5_000) }).kept;
      expect(description).to.match(/\u{1f3ac}$/u);
      expect(description?.isWellFormed()).to.equal(true);
    }
  });

  it('counts what JSON escapes', () => {
    const { kept } = shorten({ description: '\n"'.repeat(5_000) });
    expect(bytesOf(kept)).to.be.within(15_998, 16_000);
  });

  it('leaves out a long URL instead of its end', () => {
    const long = `https://example.com/${'\u7535'.repeat(4_000)}`;
    const { kept } = shorten({ thumbnail: long, channel_url: long });
    expect([kept.thumbnail, kept.channel_url].filter((url) => url !== null)).to.deep.equal([long]);
    expect(bytesOf(kept)).to.be.at.most(16_000);
  });

  // The lengths are those of JSON, quotation marks and names included: {"title":"abcdefgh"} has 20 bytes.
  const rows: [what: string, given: object, maxBytes: number, kept: object][] = [
    ['nothing of what just fits', { title: 'abcdefgh' }, 20, { title: 'abcdefgh' }],
    ['one byte', { title: 'abcdefgh' }, 19, { title: 'abcdefg' }],
    ['all but an empty text', { title: 'abcdefgh' }, 12, { title: '' }],
    ['no more than there is', { title: 'abcdefgh', width: 1920 }, 5, { title: '', width: 1920 }],
    ['texts alone', { view_count: 123_456_789, title: 'ab' }, 33, { view_count: 123_456_789, title: '' }],
    ['nothing where no text is', { width: 1920 }, 5, { width: 1920 }],
    ['the longer text first', { id: 'abc', title: 'abcdefgh' }, 26, { id: 'abc', title: 'abc' }],
    ['both when they have become equal', { id: 'abc', title: 'abcdefgh' }, 24, { id: 'ab', title: 'ab' }],
    [
      'a text, after a URL was left out and that was too little',
      { title: 'abcdefgh', thumbnail: 'https://a.example/1' },
      35,
      { title: 'abcdef', thumbnail: null },
    ],
  ];
  for (const [what, given, maxBytes, kept] of rows) {
    it(`takes away ${what}`, () => expect(shortenMetadata({ ...given }, maxBytes)).to.deep.equal(kept));
  }
});
