import { expect } from 'chai';
import fc from 'fast-check';
import { makeSeal } from '../../src/base/seal.ts';
import { checkLink, displayName, dispositionOf, makeLink } from '../../src/model/file-link.ts';
import { aJob, someDelivered } from '../support/jobs.ts';
import { threadMs } from '../support/turn-length.ts';

const { sign, verify } = makeSeal({ secret: Buffer.alloc(32, 1) });
const expiresAt = Date.UTC(2026, 0, 2);
const done = aJob({
  status: 'CompletedJob',
  metadata: { title: 'Käse & Brot, 50 % (live)' },
  delivered: someDelivered(1),
});
const name = 'Käse & Brot, 50 % (live).mp4';
const good = { is: 'good', job: done.id, name };
const link = makeLink(done, expiresAt, 'https://example.com', sign) ?? '';
const target = link.slice('https://example.com'.length);
const other = makeLink({ ...done, id: done.id.replace('1', '2') }, expiresAt, '', sign) ?? '';

function judge(asked: string, now = expiresAt - 1): unknown {
  return checkLink(asked, now, verify);
}

describe('a result link', () => {
  it('begins with the public URL and holds the job, the name, the time and the signature', () => {
    const path = `/files/${done.id}/K%C3%A4se%20%26%20Brot%2C%2050%20%25%20%28live%29.mp4`;
    expect(target).to.match(/^[^?]+\?exp=\d+&sig=[\w-]{43}$/);
    expect(target.split('?')[0]).to.equal(path);
    expect(makeLink(done, expiresAt, 'https://media.example.com/base', sign)).to.equal(
      `https://media.example.com/base${target}`,
    );
  });

  it('stays good from release to release', () => {
    // The signature was made apart from this program, with Python's hmac (RFC 5869 and RFC 2104).
    const signed = '/files/11111111-2222-4333-8444-555555555555/A%20film.mp4?exp=1767312000';
    const old = `${signed}&sig=uobK7kB7r4AQniNP13oDBxEGlucIv9mxIO1JLvPUFr4`;
    expect(makeLink({ ...done, metadata: { title: 'A film' } }, expiresAt, '', sign)).to.equal(old);
    expect(judge(old)).to.deep.equal({ ...good, name: 'A film.mp4' });
  });

  it('names the file media.mp4 where the source told nothing of it', () =>
    expect(makeLink({ ...done, metadata: null }, expiresAt, '', sign)).to.contain('/media.mp4?'));

  it('is not made where there is no file', () => {
    expect(makeLink({ ...done, delivered: null }, expiresAt, '', sign)).to.equal(null);
    expect(makeLink({ ...done, removed_at: 5 }, expiresAt, '', sign)).to.equal(null);
  });

  const { searchParams } = new URL(link);
  const [exp, sig] = [searchParams.get('exp'), searchParams.get('sig')];
  const path = target.split('?')[0];
  const rows: [string, string, unknown][] = [
    ['opens its file', target, good],
    ['opens its file with its parameters in another order', `${path}?sig=${sig}&exp=${exp}`, good],
    [
      'opens its file with further parameters that are not signed',
      `${path}?a=1&exp=${exp}&x_api_key=k&sig=${sig}&soft_fail=true`,
      good,
    ],
    ['opens its file when a proxy has encoded fewer characters', target.replace('%2C', ',').replace('%28', '('), good],
    ['opens its file when a proxy has encoded in small letters', target.replace('%C3%A4', '%c3%a4'), good],
    ['does not open another file', `${other.split('?')[0]}?exp=${exp}&sig=${sig}`, { is: 'altered' }],
    ['does not open its file under another name', target.replace('live', 'dead'), { is: 'altered' }],
    ['with a later expiry than the signed one is refused', target.replace('exp=1', 'exp=2'), { is: 'altered' }],
    ['with its expiry written in another way is refused', target.replace('exp=', 'exp=0'), { is: 'altered' }],
    ['with a second expiry is refused', `${target}&exp=9999999999`, { is: 'altered' }],
    ['with a second signature is refused', `${target}&sig=a`, { is: 'altered' }],
    ['without its expiry is refused', `${path}?sig=${sig}`, { is: 'altered' }],
    ['without its signature is refused', `${path}?exp=${exp}`, { is: 'altered' }],
    ['without any parameter is refused', path ?? '', { is: 'altered' }],
    ['without its name is refused', `/files/${done.id}?exp=${exp}&sig=${sig}`, { is: 'altered' }],
    ['below another path is refused', `/x${target}`, { is: 'altered' }],
    ['with a fragment, which no client sends, is refused', `${target}#t=5`, { is: 'altered' }],
    ['with a longer path is refused', `${path}/x?exp=${exp}&sig=${sig}`, { is: 'altered' }],
    ['with a slash hidden in its name is refused', target.replace('%20', '%2F'), { is: 'altered' }],
    ['with broken percent-encoding is refused', target.replace('%C3%A4', '%C3%A'), { is: 'altered' }],
    ['with bytes that are no UTF-8 is refused', target.replace('%C3%A4', '%C3%28'), { is: 'altered' }],
  ];
  for (const [title, asked, wanted] of rows) it(title, () => expect(judge(asked)).to.deep.equal(wanted));

  it('has expired from its expiry on, and an altered one is refused as altered even then', () => {
    expect(judge(target, expiresAt)).to.deep.equal({ is: 'expired' });
    expect(judge(target.replace('live', 'dead'), expiresAt)).to.deep.equal({ is: 'altered' });
  });

  it('expires in the second in which its file does, not after it', () => {
    const early = makeLink(done, expiresAt + 999, '', sign) ?? '';
    expect(judge(early, expiresAt)).to.deep.equal({ is: 'expired' });
  });

  it('a result link that was signed with another secret is refused', () => {
    const stranger = makeSeal({ secret: Buffer.alloc(32, 2) });
    expect(checkLink(target, 0, stranger.verify)).to.deep.equal({ is: 'altered' });
  });

  it('is refused with any letter altered', () => {
    fc.assert(
      fc.property(fc.nat({ max: target.length - 1 }), fc.string({ minLength: 1, maxLength: 1 }), (at, letter) => {
        const altered = target.slice(0, at) + letter + target.slice(at + 1);
        expect(judge(altered)).to.deep.equal(saysTheSame(altered) ? good : { is: 'altered' });
      }),
    );
  });

  it('is refused when it is cut anywhere', () => {
    for (let length = 0; length < target.length; length++) {
      expect(judge(target.slice(0, length))).to.deep.equal({ is: 'altered' });
    }
  });
});

/** Only the case of a hexadecimal digit can change without another meaning. */
function saysTheSame(altered: string): boolean {
  const upper = (text: string) => text.replace(/%[0-9a-f]{2}/gi, (code) => code.toUpperCase());
  return upper(altered) === target;
}

/** [title, what the source calls it, the name of its file] */
const names: [string, unknown, string][] = [
  ['keeps a plain title', 'A film', 'A film.mp4'],
  ['keeps letters of all scripts', 'Zażółć 日本語 العربية', 'Zażółć 日本語 العربية.mp4'],
  ['keeps joined emoji and Persian words', '👨‍👩‍👧 می‌خواهم', '👨‍👩‍👧 می‌خواهم.mp4'],
  ['composes letters', 'Ka\u0308se', 'Käse.mp4'],
  ['turns separators into a space', 'AC/DC\\live: "x" <y> | ? *', 'AC DC live x y.mp4'],
  ['drops the steps of a path', '../../etc/passwd', 'etc passwd.mp4'],
  ['turns control characters into a space', 'a\r\nSet-Cookie: b\0c\u0085d', 'a Set-Cookie b c d.mp4'],
  ['turns line separators into a space', 'a\u2028b\u2029c', 'a b c.mp4'],
  [
    'turns bidirectional control characters into a space',
    'film\u202e4pm.exe\u2066x\u200fy\u061cz',
    'film 4pm.exe x y z.mp4',
  ],
  ['turns invisible characters into a space', 'a\u200bb\ufeffc\u{e0041}d', 'a b c d.mp4'],
  ['turns half a surrogate pair into a space', 'a\ud800b', 'a b.mp4'],
  ['turns several spaces into one', '  a \t\u00a0\u3000 b  ', 'a b.mp4'],
  ['drops dots and dashes at the beginning', '.-~ -rf', 'rf.mp4'],
  ['drops dots at the end', 'wait ... ', 'wait.mp4'],
  ['does not double its own extension', 'clip.MP4', 'clip.mp4'],
  ['keeps another extension before its own', 'clip.exe', 'clip.exe.mp4'],
  ['is media.mp4 without a title', null, 'media.mp4'],
  ['is media.mp4 for a title that is no text', { a: 1 }, 'media.mp4'],
  ['is media.mp4 for an empty title', '', 'media.mp4'],
  ['is media.mp4 for a title of unfit characters alone', '/\u202e\0..', 'media.mp4'],
];

describe('the file name of a result', () => {
  for (const [title, given, wanted] of names) {
    it(title, () => expect(displayName(given, 'video/mp4')).to.equal(wanted));
  }

  it('has the extension of a content type that may be delivered, and bin for another type', () => {
    expect(displayName('a', 'audio/mp4')).to.equal('a.m4a');
    expect(displayName('a', 'text/html')).to.equal('a.bin');
  });

  it('is cut to 150 bytes between two characters', () => {
    expect(displayName('a'.repeat(10_000), 'video/mp4')).to.equal(`${'a'.repeat(146)}.mp4`);
    expect(displayName(`a${'😀'.repeat(100)}`, 'video/mp4')).to.equal(`a${'😀'.repeat(36)}.mp4`);
  });

  it('is fit for a file and a header, whatever the title is', () => {
    const title = fc.string({ unit: fc.oneof(fc.constantFrom(...'./\\-~ "\r\n\0\u202e\u200d\ud83d%'), fc.string()) });
    fc.assert(
      fc.property(title, (title) => {
        const name = displayName(title, 'video/webm');
        expect(name)
          .to.match(/^[^.\s~-].*\.webm$/u)
          .and.not.match(/[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}/\\:*?"<>|]/u);
        expect(Buffer.byteLength(name)).to.be.at.most(150);
        expect(name).to.equal(name.toWellFormed());
      }),
    );
  });

  it('is made of 100,000 of the worst characters within half a second of a processor', () => {
    const began = threadMs();
    for (const unit of ['. ', '\u200d', '.webm', '/', '\ud800']) displayName(unit.repeat(100_000), 'video/webm');
    expect(threadMs() - began).to.be.below(500);
  });
});

describe('Content-Disposition', () => {
  for (const [title, given, wanted] of [
    ['has a plain name as it is', 'a b.mp4', `filename="a b.mp4"; filename*=UTF-8''a%20b.mp4`],
    [
      'has an ASCII name beside the real one',
      'Käse 😀.mp4',
      `filename="K_se _.mp4"; filename*=UTF-8''K%C3%A4se%20%F0%9F%98%80.mp4`,
    ],
    [
      'encodes what has a meaning in a header',
      `a'(b)*!%;,="\\`,
      `filename="a'(b)*!_;,=__"; filename*=UTF-8''a%27%28b%29%2A%21%25%3B%2C%3D%22%5C`,
    ],
    ['cannot be broken in two', 'a\r\nb\ud800', `filename="a__b_"; filename*=UTF-8''a%0D%0Ab%EF%BF%BD`],
  ] as const) {
    it(title, () => expect(dispositionOf(given)).to.equal(`attachment; ${wanted}`));
  }

  it('is visible ASCII, whatever the name is', () => {
    const anything = fc.array(fc.nat({ max: 0x10ffff })).map((points) => String.fromCodePoint(...points));
    fc.assert(fc.property(anything, (name) => /^[ -~]+$/.test(dispositionOf(name))));
  });
});
