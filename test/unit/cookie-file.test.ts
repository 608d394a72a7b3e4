import { expect } from 'chai';
import { readCookieFile } from '../../src/model/cookie-file.ts';

const first = '# Netscape HTTP Cookie File';
const cookie = '.example.com\tTRUE\t/\tTRUE\t1893456000\tsession\tabc';

describe('a line of a cookie file', () => {
  /** Each was given to yt-dlp 2026.10.26, which takes them. */
  const cookies: [what: string, line: string][] = [
    ['a domain and its hosts', cookie],
    ['one host', 'www.example.com\tFALSE\t/\tFALSE\t0\tsession\tabc'],
    ['a domain, hidden from scripts', `#HttpOnly_${cookie}`],
    ['one host, hidden from scripts', '#HttpOnly_www.example.com\tFALSE\t/\tTRUE\t0\tsession\tabc'],
    ['a session, without an expiry', '.example.com\tTRUE\t/\tTRUE\t\tsession\tabc'],
    ['an expiry with a fraction', '.example.com\tTRUE\t/\tTRUE\t1893456000.25\tsession\tabc'],
    ['an empty value', '.example.com\tTRUE\t/\tTRUE\t0\tsession\t'],
    ['a value with blanks, a hash and a dollar', '.example.com\tTRUE\t/\tTRUE\t0\tsession\ta #$ b'],
  ];
  for (const [what, line] of cookies) {
    it(`is a cookie for ${what}`, () =>
      expect(readCookieFile(line)).to.deep.equal({ kept: `${first}\n${line}`, wrongLines: [] }));
  }

  const wrong: [what: string, line: string][] = [
    ['six fields', '.example.com\tTRUE\t/\tTRUE\t0\tsession'],
    ['eight fields', `${cookie}\tx`],
    ['a field in front of the domain', `x\t${cookie}`],
    ['blanks for tabs', cookie.replaceAll('\t', ' ')],
    ['a domain without the dot that its second field tells', cookie.slice(1)],
    ['a domain with a dot that its second field denies', cookie.replace('TRUE', 'FALSE')],
    ['a hidden domain without its dot', `#HttpOnly_${cookie.slice(1)}`],
    ['a word for its expiry', cookie.replace('1893456000', 'never')],
    ['an expiry before 1970', cookie.replace('1893456000', '-1')],
    ['an expiry that ends with a dot', cookie.replace('1893456000', '1893456000.')],
    ['an expiry of 21 digits', cookie.replace('1893456000', '1'.repeat(21))],
    ['a fraction of 21 digits', cookie.replace('1893456000', `1.${'1'.repeat(21)}`)],
    ['no domain', '\tFALSE\t/\tTRUE\t0\tsession\tabc'],
    ['a dollar in front, which yt-dlp skips', '$www.example.com\tFALSE\t/\tTRUE\t0\tsession\tabc'],
    ['the JSON of another program', '[{"name": "session", "value": "abc"}]'],
  ];
  for (const [what, line] of wrong) {
    it(`is no cookie with ${what}`, () => expect(readCookieFile(line)).to.deep.equal({ kept: first, wrongLines: [1] }));
  }

  for (const line of ['', '  ', '# a comment', ' # a comment', `#${cookie}`, first]) {
    it(`is a comment as ${JSON.stringify(line).slice(0, 40)}`, () =>
      expect(readCookieFile(line)).to.deep.equal({ kept: first, wrongLines: [] }));
  }
});

describe('a cookie file', () => {
  for (const [name, end] of [
    ['Unix', '\n'],
    ['Windows', '\r\n'],
    ['old Macintosh', '\r'],
  ] as const) {
    it(`keeps its cookies and counts the other lines, with line ends of ${name}`, () => {
      const lines = [first, '# made by a browser', '', cookie, 'secret', `#HttpOnly_${cookie}`, 'a\tb', ''];
      expect(readCookieFile(lines.join(end))).to.deep.equal({
        kept: [first, cookie, `#HttpOnly_${cookie}`].join('\n'),
        wrongLines: [5, 7],
      });
    });
  }
});
