import { expect } from 'chai';
import fc from 'fast-check';
import { makeSeal } from '../../src/base/seal.ts';

const first = Buffer.alloc(32, 1);
const second = Buffer.alloc(32, 2);
const before = makeSeal({ secret: first });
const after = makeSeal({ secret: second, old: [first] });
const stranger = makeSeal({ secret: second });
const base64url = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ ';
const whole = fc.string({ unit: 'grapheme' });
const place = fc.nat({ max: 10_000 });
const letter = fc.constantFrom(...base64url);

function replaceAt(text: string, at: number, letter: string): string {
  return text.slice(0, at) + letter + text.slice(at + 1);
}

describe('a signature', () => {
  it('is the same for the same purpose and text, 43 letters of base64url', () => {
    expect(before.sign('link', 'a')).to.equal(makeSeal({ secret: first }).sign('link', 'a'));
    expect(before.sign('link', 'a')).to.match(/^[A-Za-z0-9_-]{43}$/);
  });

  it('is accepted for any purpose and text', () => {
    fc.assert(fc.property(whole, whole, (purpose, text) => before.verify(purpose, text, before.sign(purpose, text))));
  });

  const signature = before.sign('link', 'a');
  const rows: [title: string, accepted: boolean, verify: () => boolean][] = [
    ['made with the old secret is accepted', true, () => after.verify('link', 'a', signature)],
    ['made with the new secret is accepted', true, () => after.verify('link', 'a', after.sign('link', 'a'))],
    ['made with a forgotten secret is refused', false, () => stranger.verify('link', 'a', signature)],
    [
      'made with the new secret is refused by the old',
      false,
      () => before.verify('link', 'a', after.sign('link', 'a')),
    ],
    ['for another purpose is refused', false, () => before.verify('token', 'a', signature)],
    ['for another text is refused', false, () => before.verify('link', 'b', signature)],
    ['that is empty is refused', false, () => before.verify('link', 'a', '')],
    ['with something added is refused', false, () => before.verify('link', 'a', `${signature}=`)],
    ['of odd letters is refused', false, () => before.verify('link', 'a', 'é'.repeat(43))],
  ];
  for (const [title, accepted, verify] of rows) it(title, () => expect(verify()).to.equal(accepted));

  it('with any letter altered is refused', () => {
    fc.assert(
      fc.property(place, letter, (at, letter) => {
        const altered = replaceAt(signature, at % signature.length, letter);
        expect(before.verify('link', 'a', altered)).to.equal(altered === signature);
      }),
    );
  });
});

describe('a sealed text', () => {
  it('opens as what it was', () => {
    fc.assert(
      fc.property(whole, whole, (purpose, plain) => before.open(purpose, before.seal(purpose, plain)) === plain),
    );
  });

  it('shows nothing of what it holds, and is different each time', () => {
    const [one, two] = [before.seal('webhook', 'canary'), before.seal('webhook', 'canary')];
    expect(one).not.to.equal(two);
    expect(Buffer.from(one.slice(3), 'base64url').toString('latin1')).not.to.contain('canary');
  });

  const sealed = before.seal('webhook', 'canary');
  const rows: [title: string, opened: string | null, open: () => string | null][] = [
    ['opens with the old secret', 'canary', () => after.open('webhook', sealed)],
    ['of the new secret opens', 'new', () => after.open('webhook', after.seal('webhook', 'new'))],
    ['stays shut without its secret', null, () => stranger.open('webhook', sealed)],
    ['of the new secret stays shut for the old', null, () => before.open('webhook', after.seal('webhook', 'new'))],
    ['stays shut for another purpose', null, () => before.open('token', sealed)],
    ['stays shut when it is empty', null, () => before.open('webhook', '')],
    ['stays shut when only its version is left', null, () => before.open('webhook', 'v1.')],
    ['stays shut without its version', null, () => before.open('webhook', sealed.slice(3))],
    ['stays shut with another version', null, () => before.open('webhook', sealed.replace('v1.', 'v2.'))],
    ['stays shut with something added', null, () => before.open('webhook', `${sealed}A`)],
    ['stays shut with a blank added', null, () => before.open('webhook', `${sealed} `)],
  ];
  for (const [title, opened, open] of rows) it(title, () => expect(open()).to.equal(opened));

  it('stays shut with any letter altered', () => {
    fc.assert(
      fc.property(whole, place, letter, (plain, at, letter) => {
        const text = before.seal('webhook', plain);
        const altered = replaceAt(text, at % text.length, letter);
        expect(before.open('webhook', altered)).to.equal(altered === text ? plain : null);
      }),
    );
  });

  it('stays shut with any bit of its bytes altered', () => {
    const bytes = Buffer.from(sealed.slice(3), 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const altered = Buffer.from(bytes);
      altered[bit >> 3]! ^= 1 << (bit & 7);
      expect(before.open('webhook', `v1.${altered.toString('base64url')}`)).to.equal(null);
    }
  });

  it('stays shut when it is cut anywhere', () => {
    for (let length = 0; length < sealed.length; length++) {
      expect(before.open('webhook', sealed.slice(0, length))).to.equal(null);
    }
  });
});

describe('a secret', () => {
  for (const length of [0, 31, 33]) {
    it(`of ${length} bytes is refused, as the old one too`, () => {
      expect(() => makeSeal({ secret: Buffer.alloc(length) })).to.throw('32 bytes');
      expect(() => makeSeal({ secret: first, old: [Buffer.alloc(length)] })).to.throw('32 bytes');
    });
  }
});
