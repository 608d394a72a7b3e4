import { expect } from 'chai';
import {
  accountToOpen,
  type Changeable,
  identityOf,
  makePersonSecret,
  mayChange,
  type PersonRole,
  personIdOf,
  readEmail,
  readPassword,
  readPersonSecret,
  readRole,
  roleIn,
  type SessionRole,
  signInUrl,
} from '../../src/model/person.ts';

describe('the subjects that a role may change', () => {
  const subjects: readonly Changeable[] = ['keys', 'jobs', 'webhooks', 'money', 'people'];
  const rows: [role: SessionRole, may: string][] = [
    ['owner', 'keys jobs webhooks money people'],
    ['member', 'keys jobs webhooks'],
    ['viewer', ''],
    ['operator', ''],
  ];
  for (const [role, may] of rows) {
    it(`D87: are ${may || 'none'} for ${role}`, () =>
      expect(subjects.filter((subject) => mayChange(role, subject)).join(' ')).to.equal(may));
  }
});

describe('the role of a person in an account', () => {
  const roles: Record<string, PersonRole> = { acme: 'viewer' };
  const rows: [what: string, isOperator: boolean, account: string, role: SessionRole | null][] = [
    ['one of theirs', false, 'acme', 'viewer'],
    ['one of others', false, 'other', null],
    ['one of others, for an operator', true, 'other', 'operator'],
    ['one of theirs, for an operator who has a role there', true, 'acme', 'viewer'],
    ['a name that every object has', false, 'constructor', null],
  ];
  for (const [what, isOperator, account, role] of rows) {
    it(`is ${role ?? 'none'} in ${what}`, () => expect(roleIn({ isOperator, roles }, account)).to.equal(role));
  }
});

describe('the account that a session opens with', () => {
  const roles: Record<string, PersonRole> = { mid: 'owner', zoo: 'viewer', acme: 'member' };
  const rows: [what: string, roles: Record<string, PersonRole>, shown: string | undefined, account: string][] = [
    ['the shown one', roles, 'zoo', 'zoo'],
    ['the first by its id when none is shown', roles, undefined, 'acme'],
    ['the first by its id when that of others is shown', roles, 'other', 'acme'],
    ['the first by its id when a name that every object has is shown', roles, 'constructor', 'acme'],
    ['none for a person without a role', {}, undefined, ''],
  ];
  for (const [what, own, shown, account] of rows) {
    it(`is ${what}`, () => expect(accountToOpen({ roles: own }, shown)).to.equal(account));
  }
});

describe('the identity of a person at an issuer', () => {
  it('begins with the configured issuer and names the directory that vouches when that is another one', () => {
    expect(identityOf('https://a.example', { iss: 'https://a.example', sub: 'ada' })).to.equal('https://a.example ada');
    const ofTenant = identityOf('https://a.example/{tenantid}', { iss: 'https://a.example/7', sub: 'ada' });
    expect(ofTenant).to.equal('https://a.example/{tenantid} https://a.example/7 ada');
  });
});

describe('readEmail', () => {
  const [local, domain] = ['a'.repeat(64), `${'b'.repeat(185)}.com`];
  const taken: [text: string, email: string][] = [
    ['ada@example.com', 'ada@example.com'],
    [' Ada.Lovelace@Example.COM\n', 'ada.lovelace@example.com'],
    ["o'hara+trawl/1@mail-1.example.co.uk", "o'hara+trawl/1@mail-1.example.co.uk"],
    ['jürgen@example.com', 'jürgen@example.com'],
    ['root@localhost', 'root@localhost'],
    ['a@b', 'a@b'],
    [`${local}@${domain}`, `${local}@${domain}`],
  ];
  for (const [text, email] of taken) {
    it(`takes ${JSON.stringify(text).slice(0, 50)}, in lower case`, () =>
      expect(readEmail(text)).to.deep.equal({ value: email }));
  }

  const refused: unknown[] = [
    '\u212aate@example.com',
    ...['', 'ada', '@example.com', 'ada@', 'ada@@example.com', 'ada@b@example.com', 'ada @example.com'],
    ...['Ada <ada@example.com>', 'ada@example.com, bob@example.com', 'ada@example.com;bob@example.com'],
    ...['ada@example.com\nBcc: bob@example.com', '"ada"@example.com', 'ada(x)@example.com', 'a\\b@example.com'],
    ...['ada:x@example.com', 'ada[1]@example.com', 'ada\u202e@example.com', 'ada\0@example.com'],
    ...['ada@-example.com', 'ada@.example.com', 'ada@example.com.', 'ada@example.com-', 'ada@example..com'],
    ...['a..b@example.com', 'ada@exämple.com', 'ada@exa_mple.com', 'ada@[192.0.2.7]', 'ada@192.0.2.7:25'],
    ...[`a${local}@example.com`, `${local}@b${domain}`, 7, null, undefined, ['ada@example.com']],
  ];
  for (const text of refused) {
    it(`refuses ${JSON.stringify(text)?.slice(0, 50)}, with an example of a right one`, () => {
      const read = readEmail(text);
      expect(read.value).to.equal(undefined);
      expect(read.problem).to.match(/name@example\.com .* 254 /);
    });
  }
});

describe('readRole', () => {
  for (const role of ['owner', 'member', 'viewer'])
    it(`takes ${role}`, () => expect(readRole(role)).to.deep.equal({ value: role }));

  for (const text of ['operator', 'Owner', '', 'owner ', 'toString', 0, undefined]) {
    it(`refuses ${JSON.stringify(text)}, and names the three`, () =>
      expect(readRole(text)).to.deep.equal({ problem: 'A role is one of owner, member, viewer' }));
  }
});

describe('readPassword', () => {
  for (const text of ['8 chars.', ' spaces count ', 'x'.repeat(256)]) {
    it(`takes ${text.length} characters as they are`, () => expect(readPassword(text)).to.deep.equal({ value: text }));
  }

  for (const text of ['', '7 chars', 'x'.repeat(257), 12_345_678, ['8', 'c', 'h', 'a', 'r', 's', '.', '.'], null]) {
    it(`refuses ${JSON.stringify(text).slice(0, 40)}`, () => {
      const read = readPassword(text);
      expect(read.value).to.equal(undefined);
      expect(read.problem).to.match(/ 8 to 256 characters/);
    });
  }
});

describe('the secret of a person', () => {
  // Both were made apart from this program, with Python's hashlib and base64: the record is kept under them.
  const personId = 'iVRWpiozhwZ__APEW4GQqw';
  const [secret, secretHash] = [
    'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8',
    '6oZqdX5MOLq_qBJ8vppAnT4fk6AP8UiP9zX8-Rev_9A',
  ];
  const text = `${personId}.${secret}`;

  it('begins with the id of the person, which is a hash of the e-mail address', () => {
    expect(personIdOf('ada@example.com')).to.equal(personId);
    const bytes = Uint8Array.from({ length: 32 }, (_, n) => n);
    expect(makePersonSecret(personId, bytes)).to.equal(text);
  });

  it('is read as the id and the hash of the rest', () =>
    expect(readPersonSecret(text)).to.deep.equal({ personId, secretHash }));

  const wrong: [what: string, text: unknown][] = [
    ['nothing', ''],
    ['an id alone', personId],
    ['a secret alone', secret],
    ['an id and nothing', `${personId}.`],
    ['another mark between', `${personId}:${secret}`],
    ['an id that is one letter short', text.slice(1)],
    ['an id that is one letter long', `a${text}`],
    ['a secret that is one letter short', text.slice(0, -1)],
    ['a secret that is one letter long', `${text}a`],
    ['a letter of base64 that base64url lacks, at the beginning', `+${text.slice(1)}`],
    ['a letter of base64 that base64url lacks, at the end', `${text.slice(0, -1)}/`],
    ['a list of it', [text]],
    ['no text', undefined],
  ];
  for (const [what, given] of wrong) it(`is not ${what}`, () => expect(readPersonSecret(given)).to.equal(null));

  it('stands behind # in a sign-in link, so that no server sees it', () =>
    expect(signInUrl('https://trawl.example.com', text)).to.equal(`https://trawl.example.com/sign-in#${text}`));
});
