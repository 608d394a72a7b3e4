import { expect } from 'chai';
import { fieldText, tableText, timeText } from '../../src/admin/text-table.ts';

describe('the text of a terminal', () => {
  it('shows rows as a table with a head and numbers to the right', () => {
    const rows = [
      { name: 'one', amount: 1_000 },
      { name: 'another', amount: null },
    ];
    expect(tableText(rows, 'None.')).to.equal(['name     amount', 'one       1,000', 'another       -', ''].join('\n'));
  });

  it('shows a sentence when a table has no rows', () => {
    expect(tableText([], 'There are none.')).to.equal('There are none.\n');
  });

  it('shows each field of a record on its own line', () => {
    expect(fieldText({ a: true, long: 12_345, empty: '', none: null })).to.equal(
      ['a      yes', 'long   12,345', 'empty  -', 'none   -', ''].join('\n'),
    );
  });

  it('replaces control characters, which a terminal would obey', () => {
    expect(tableText([{ name: '\x1b[2Ja\nb\u202e', amount: 1 }], '')).to.equal('name      amount\n?[2Ja?b?       1\n');
  });

  it('counts a letter of two code units as one column', () => {
    expect(fieldText({ '😀': 'x', ab: 'y' })).to.equal('😀   x\nab  y\n');
  });

  it('writes a time in UTC without its zone, which is in the head', () => {
    expect(timeText(Date.UTC(2026, 2, 4, 12, 0, 5, 999))).to.equal('2026-03-04 12:00:05');
    expect(timeText(null)).to.equal(null);
  });
});
