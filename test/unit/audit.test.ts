import { expect } from 'chai';
import { type Actor, type AuditAction, additions, writeNote } from '../../src/model/audit.ts';

const actor: Actor = { via: 'dashboard', who: 'ada@example.com', from: '203.0.113.7' };

describe('an audit log that is full', () => {
  const rows: [action: AuditAction, refused: boolean][] = [
    ['key.create', true],
    ['person.invite', true],
    ['passkey.add', true],
    ['key.delete', false],
    ['key.rotate', false],
    ['person.remove', false],
    ['passkey.remove', false],
    ['job.cancel', false],
  ];
  for (const [action, refused] of rows) {
    it(`${refused ? 'refuses' : 'still takes'} ${action}`, () => expect(additions.includes(action)).to.equal(refused));
  }
});

describe('the note of a change', () => {
  const read = (change?: object) => {
    const note = writeNote(actor, 'abc123def456', { action: 'key.change', target: 'main', ...(change && { change }) });
    return JSON.parse(note) as { change: unknown };
  };

  it('holds author, account, action, target and the fields that were given', () => {
    expect(read({ active: false, quotas: { daily: 50 } })).to.deep.equal({
      ...{ via: 'dashboard', who: 'ada@example.com', from: '203.0.113.7', account: 'abc123def456' },
      ...{ action: 'key.change', target: 'main', change: { active: false, quotas: { daily: 50 } } },
    });
  });

  const rows: [what: string, change: object | undefined, kept: object][] = [
    ['without fields has an empty change', undefined, {}],
    ['keeps a text of 200 characters', { alias: 'a'.repeat(200) }, { alias: 'a'.repeat(200) }],
    ['cuts a text of 201 characters', { alias: 'a'.repeat(201) }, { alias: `${'a'.repeat(200)}…` }],
    ['cuts a text in a list', { urls: ['b', 'c'.repeat(999)] }, { urls: ['b', `${'c'.repeat(200)}…`] }],
    ['keeps a list of more than 200 values', { days: Array(201).fill(1) }, { days: Array(201).fill(1) }],
  ];
  for (const [what, change, kept] of rows) it(what, () => expect(read(change).change).to.deep.equal(kept));
});
