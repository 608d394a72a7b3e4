import { expect } from 'chai';
import { fieldText, tableText, timeText } from '../../src/admin/text-table.ts';

const columns = {
  name: (row: readonly [string, number | null]) => row[0],
  amount: (row: readonly [string, number | null]) => row[1],
};

describe('what people read', () => {
  it('is a table with numbers to the right and a head', () => {
    const rows = [
      ['one', 1_000],
      ['another', null],
    ] as const;
    expect(tableText(rows, columns, 'None.')).to.equal(
      ['name     amount', 'one       1,000', 'another       -', ''].join('\n'),
    );
  });

  it('is a sentence when there are no rows', () => {
    expect(tableText([], columns, 'There are none.')).to.equal('There are none.\n');
  });

  it('is a value on each line', () => {
    expect(fieldText({ a: true, long: 12_345, empty: '', none: null })).to.equal(
      ['a      yes', 'long   12,345', 'empty  -', 'none   -', ''].join('\n'),
    );
  });

  it('holds nothing that a terminal obeys', () => {
    expect(tableText([['\x1b[2Ja\nb\u202e', 1]], columns, '')).to.equal('name      amount\n?[2Ja?b?       1\n');
  });

  it('has the same width for letters of two code units', () => {
    expect(fieldText({ '😀': 'x', ab: 'y' })).to.equal('😀   x\nab  y\n');
  });

  it('has times without a zone, as their heads name it', () => {
    expect(timeText(Date.UTC(2026, 2, 4, 12, 0, 5, 999))).to.equal('2026-03-04 12:00:05');
    expect(timeText(null)).to.equal(null);
  });
});
