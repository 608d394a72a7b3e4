import { createHash } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { makeAccountId, makeKey, readExpiry, readKey, refusalOfExpiry } from '../../src/model/api-key.ts';
import { keyState } from '../support/reference-models.ts';

const zeros = new Uint8Array(32);
const ones = new Uint8Array(32).fill(255);
const counting = Uint8Array.from({ length: 32 }, (_, n) => n);
const account = 'abc123def456';
const good = makeKey(account, counting);
const accountId = fc.string({
  unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz0123456789'),
  minLength: 12,
  maxLength: 12,
});
const secret = fc.uint8Array({ minLength: 32, maxLength: 32 });
const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

describe('makeKey', () => {
  const made: [what: string, bytes: Uint8Array, key: string][] = [
    // Made apart from this program: the secret with Python's integers, the checksum with its zlib.crc32.
    ['32 zeros', zeros, 'trawl_abc123def456_00000000000000000000000000000000000000000004LrHKh'],
    ['32 bytes of 255', ones, 'trawl_abc123def456_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp11HdYDv'],
    ['the bytes 0 to 31', counting, 'trawl_abc123def456_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf3WjqBz'],
  ];
  for (const [what, bytes, key] of made)
    it(`writes the key of ${what}`, () => expect(makeKey(account, bytes)).to.equal(key));

  for (const wrong of ['', 'abc', 'ABC123DEF456', `${account}0`, 'abc_23def456', `${account}\n`]) {
    it(`refuses the account id ${JSON.stringify(wrong)}`, () =>
      expect(() => makeKey(wrong, zeros)).to.throw(RangeError));
  }

  for (const length of [0, 31, 33]) {
    it(`refuses ${length} bytes`, () => expect(() => makeKey(account, new Uint8Array(length))).to.throw(RangeError));
  }

  it('makes keys of 68 characters that readKey reads, another for other bytes', () => {
    fc.assert(
      fc.property(accountId, secret, secret, (id, bytes, others) => {
        const text = makeKey(id, bytes);
        expect(text).to.match(/^trawl_[a-z0-9]{12}_[0-9A-Za-z]{49}$/);
        const digest = createHash('sha256').update(text).digest('hex');
        expect(readKey(text)).to.eql({ accountId: id, hash: digest, keyId: digest.slice(0, 24) });
        expect(text === makeKey(id, others)).to.equal(Buffer.from(bytes).equals(others));
      }),
    );
  });
});

describe('readKey', () => {
  const texts: [what: string, text: unknown][] = [
    ['nothing', ''],
    ['another word', 'trawl_nobody'],
    ['a key without its last character', good.slice(0, -1)],
    ['a key with one more character', `${good}0`],
    ['a key with a line end in place of its last character', `${good.slice(0, -1)}\n`],
    ['a key after a space', ` ${good.slice(0, -1)}`],
    ['a key with another beginning', good.replace('trawl', 'tramp')],
    ['a key in upper case', good.toUpperCase()],
    ['a key of another account', good.replace(account, 'abc123def457')],
    ['a key with a wrong checksum', `${good.slice(0, -6)}000000`],
    ['a good checksum of a wrong form', 'trawl_abc123def456_-------------------------------------------2c2Ni0'],
    // Each has the checksum of all that is in front of it, made with Python's zlib.crc32.
    ['a letter in front of a key', 'xtrawl_abc123def456_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf4LOgAu'],
    ['a secret of one letter more', 'trawl_abc123def456_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf03bJVQQ'],
    ['a very long text', good.repeat(100_000)],
    ['odd bytes', '\u0000\ud800\u202e'.padEnd(68, '\ud83d')],
    ['null', null],
    ['undefined', undefined],
    ['a list that holds a key', [good]],
    ['an object that says it is a key', { length: 68, toString: () => good }],
    ['a symbol', Symbol('key')],
  ];
  for (const [what, text] of texts) it(`takes ${what} for no key`, () => expect(readKey(text)).to.equal(null));

  it('returns null for anything but a key, and never throws', () => {
    const units = fc.array(fc.nat(0xffff), { minLength: 68, maxLength: 68 });
    const anything = fc.oneof(
      fc.anything(),
      units.map((codes) => String.fromCharCode(...codes)),
    );
    fc.assert(
      fc.property(anything, (text) => {
        expect(readKey(text)).to.equal(null);
      }),
    );
  });

  it('refuses a key with any one character changed', () => {
    fc.assert(
      fc.property(secret, fc.nat(67), fc.constantFrom(...base62), (bytes, at, letter) => {
        const text = makeKey(account, bytes);
        fc.pre(text[at] !== letter);
        expect(readKey(text.slice(0, at) + letter + text.slice(at + 1))).to.equal(null);
      }),
    );
  });
});

describe('makeAccountId', () => {
  const made: [what: string, bytes: Uint8Array, id: string][] = [
    ['16 zeros', zeros.slice(16), '000000000000'],
    ['15 zeros and 35', Uint8Array.from([...zeros.slice(17), 35]), '00000000000z'],
    ['16 bytes of 255', ones.slice(16), 'ynqglhzmsp33'],
  ];
  for (const [what, bytes, id] of made) it(`makes ${id} of ${what}`, () => expect(makeAccountId(bytes)).to.equal(id));

  for (const length of [0, 8, 17]) {
    it(`refuses ${length} bytes`, () => expect(() => makeAccountId(new Uint8Array(length))).to.throw(RangeError));
  }

  it('makes ids that are read back from a key made with them', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) => {
        const id = makeAccountId(bytes);
        expect(readKey(makeKey(id, zeros))?.accountId).to.equal(id);
      }),
    );
  });
});

describe('readExpiry', () => {
  const rows: [text: unknown, expires: number | null][] = [
    ['2024-02-29', Date.UTC(2024, 1, 29, 23, 59, 59, 999)],
    ['2033-01-02T03:04:05+01:00', Date.UTC(2033, 0, 2, 2, 4, 5)],
    ['2023-02-30', null],
    ['never', null],
    [undefined, null],
  ];
  for (const [text, expires] of rows)
    it(`key-expires D39: reads ${text} as ${expires}`, () => expect(readExpiry(text)).to.equal(expires));
});

describe('refusalOfExpiry', () => {
  const now = Date.UTC(2026, 2, 4);
  const rows: [what: string, expires: number | null | undefined, refused: boolean][] = [
    ['a key without an expiry', null, false],
    ['an expiry that is not changed', undefined, false],
    ['an expiry to come', now + 1, false],
    ['an expiry at this moment, at which the key still works', now, false],
    ['an expiry that has passed', now - 1, true],
    ['an expiry of 1970', 0, true],
  ];
  for (const [what, expires, refused] of rows) {
    it(`${refused ? 'refuses' : 'allows'} ${what}`, () =>
      expect(refusalOfExpiry(expires, now) !== null).to.equal(refused));
  }

  it('names the time, in which a wrong year is seen', () =>
    expect(refusalOfExpiry(Date.UTC(2025, 2, 5), now)).to.match(/ 2025-03-05T00:00:00\.000Z$/));
});

describe('keyState', () => {
  const end = Date.UTC(2024, 1, 29, 23, 59, 59, 999);
  const rows: [what: string, active: boolean, expires: number | null, now: number, state: string][] = [
    ['a key without an expiry works', true, null, end, 'working'],
    ['a key works in the last millisecond of its last day', true, end, end, 'working'],
    ['a key has expired at the next midnight', true, end, end + 1, 'expired_api_key'],
    ['a deactivated key is inactive', false, null, end, 'inactive_api_key'],
    ['a deactivated key with time left is inactive', false, end, end, 'inactive_api_key'],
    ['a deactivated and expired key is inactive, not expired', false, end, end + 1, 'inactive_api_key'],
  ];
  for (const [what, active, expires, now, state] of rows) {
    it(what, () => expect(keyState({ active, expires }, now)).to.equal(state));
  }
});
