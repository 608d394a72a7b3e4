import { expect } from 'chai';
import fc from 'fast-check';
import { judgeUrl } from '../../src/model/public-address.ts';

function judge(text: string): string {
  const judged = judgeUrl(text, []);
  return judged.ok ? judged.href : judged.sentence;
}

describe('judgeUrl of texts that parsers read differently', () => {
  const ambiguous: Readonly<Record<string, readonly string[]>> = {
    'must be a URL without control characters, tabs and line breaks': [
      'http://example.com/\u0000a',
      'http://example.com/\r\nX: 1',
      '\thttp://example.com/',
      'http://exam\tple.com/',
      'http://example.com\n/',
      'http://example.com/a\n',
      'http://example.com/\u007f',
      'http://example.com/\u0085',
      'http://example.com/\ud800',
    ],
    'must be a URL without a backslash': [
      'http:\\\\example.com\\a',
      'http://example.com\\@10.0.0.1/',
      'http://10.0.0.1\\.example.com/',
      'https://example.com/a\\b',
      'https://example.com/?a=\\',
    ],
    'must be a URL whose host follows two slashes': [
      'http:example.com/a',
      'http:/example.com/a',
      'http:///example.com/a',
      'http:////example.com/a',
      'https:///',
      'http://',
      'https://',
      'http://?example.com',
      'http://#example.com',
    ],
    'must be a URL with a valid host name': [
      'http://ex%61mple.com/',
      ...Array.from('!"$&\'()*+,;={}~`', (odd) => `http://exam${odd}ple.com/`),
      'http://8.8.8.8{/',
      'http://8.8.8.8;/',
      'http://ex%C3%A4mple.com/',
    ],
  };
  for (const [sentence, texts] of Object.entries(ambiguous)) {
    for (const text of texts) {
      it(`D28: refuses ${JSON.stringify(text)}, which parsers read differently: ${sentence}`, () =>
        expect(judge(text)).to.equal(sentence));
    }
  }
});

describe('every URL that is accepted', () => {
  it('is handed on as one that the plain rule of RFC 3986 reads the same: scheme, host, port, path, query and fragment', () => {
    const pieces = fc.constantFrom(
      ...'http:// https:// http: / // \\ @ : # ? % %2f %40 . .. a example.com 8.8.8.8 [::1] :80 \t \n ü ； ＠ /a?b=c'.split(
        ' ',
      ),
      '\t',
      '\n',
    );
    const texts = fc.tuple(fc.constantFrom('http://', 'https://', 'HTTP://', ''), fc.array(pieces, { maxLength: 8 }));
    fc.assert(
      fc.property(texts, ([start, rest]) => {
        const judged = judgeUrl(start + rest.join(''), []);
        if (!judged.ok) return;
        const [, scheme, host, port = '', tail] =
          /^(https?):\/\/([^/?#:@\\]+|\[[\da-f:.]+\])(?::(\d+))?(\/[^#\s\\]*(?:#[^\s\\]+)?)$/.exec(judged.href) ?? [];
        const url = new URL(judged.href);
        expect([`${scheme}:`, host, port, tail]).to.deep.equal([
          url.protocol,
          url.hostname,
          url.port,
          url.href.slice(url.origin.length),
        ]);
      }),
      { numRuns: 2000 },
    );
  });
});
