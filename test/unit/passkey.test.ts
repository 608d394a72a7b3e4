import { expect } from 'chai';
import { readPasskeyName, relyingParty } from '../../src/model/passkey.ts';

describe('the name of a passkey', () => {
  const rows: [what: string, text: unknown, name: string | undefined][] = [
    ['a word', 'Phone', 'Phone'],
    ['words in any script', 'Schlüssel 鍵', 'Schlüssel 鍵'],
    ['a name between blanks, without them', ' My phone\n', 'My phone'],
    ['60 characters, counted as a reader does', '🔑'.repeat(60), '🔑'.repeat(60)],
    ['61 characters', 'a'.repeat(61), undefined],
    ['nothing', '', undefined],
    ['blanks alone', '  ', undefined],
    ['a line end within', 'My\nphone', undefined],
    ['a character that turns the text around', 'My\u202ephone', undefined],
    ['a number', 7, undefined],
    ['no name at all', undefined, undefined],
  ];
  for (const [what, text, name] of rows) {
    it(`${name === undefined ? 'is refused for' : 'is taken from'} ${what}`, () => {
      const read = readPasskeyName(text);
      expect(read.value).to.equal(name);
      if (name === undefined) expect(read.problem).to.match(/^The name of a passkey has 1 to 60 characters/);
    });
  }
});

describe('the name under which browsers keep passkeys', () => {
  const rows: [url: string, name: string | null][] = [
    ['https://trawl.example.com', 'trawl.example.com'],
    ['https://trawl.example.com:8443/', 'trawl.example.com'],
    ['http://trawl.example.com', null],
    ['http://localhost:8081', 'localhost'],
    ['https://localhost', 'localhost'],
    ['http://trawl.localhost:8081', 'trawl.localhost'],
    ['http://localhost.example.com', null],
    ['http://notlocalhost', null],
    ['https://192.0.2.7', null],
    ['http://127.0.0.1:8081', null],
    ['https://[2001:db8::7]', null],
    ['http://[::1]:8081', null],
  ];
  for (const [url, name] of rows) {
    it(`is ${name ?? 'none'} for ${url}`, () => expect(relyingParty(url)).to.equal(name));
  }
});
