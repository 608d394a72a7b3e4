import { expect } from 'chai';
import fc from 'fast-check';
import { parseTime, writeTime } from '../../src/model/timestamp.ts';

const read: [text: unknown, first: string | null, last: string | null][] = [
  ['2026-03-04', '2026-03-04T00:00:00.000Z', '2026-03-04T23:59:59.999Z'],
  ['2024-02-29', '2024-02-29T00:00:00.000Z', '2024-02-29T23:59:59.999Z'],
  ['9999-12-31', '9999-12-31T00:00:00.000Z', '9999-12-31T23:59:59.999Z'],
  ...same('2026-03-04T05:06:07Z', '2026-03-04T05:06:07.000Z'),
  ...same('2026-03-04T05:06Z', '2026-03-04T05:06:00.000Z'),
  ...same('2026-03-04T05:06:07.891234Z', '2026-03-04T05:06:07.891Z'),
  ...same('2026-03-04T00:30:00+01:00', '2026-03-03T23:30:00.000Z'),
  ...same('2026-12-31T23:59:59-08:30', '2027-01-01T08:29:59.000Z'),
  ...same('2026-03-04T20:00:00.5+20:00', '2026-03-04T00:00:00.500Z'),
  ...same('2026-03-04T00:00:00.123456789+23:59', '2026-03-03T00:01:00.123Z'),
  ...same('1970-01-01T00:00:00Z', '1970-01-01T00:00:00.000Z'),
];

const refused: unknown[] = [
  ...['2023-02-30', '2023-02-29', '2100-02-29', '2026-04-31', '2026-13-01', '2026-00-10', '2026-01-00', '2026-01-32'],
  ...['2023-02-30T10:00:00Z', '2026-01-01T24:00:00Z', '2026-01-01T10:60:00Z', '2026-01-01T10:00:60Z'],
  ...[
    '2026-01-01T10:00:00',
    '2026-01-01T10Z',
    '2026-01-01T10:00:00.Z',
    '2026-01-01 10:00:00Z',
    '2026-01-01T10:00:00+0100',
    '2026-01-01T10:00:00+24:00',
  ],
  ...[
    '2026-01-01Z',
    '2026-01-01T',
    '20260101',
    '26-01-01',
    '2026-1-1',
    '1-1-2026',
    '+002026-01-01',
    ' 2026-01-01',
    '2026-01-01\n',
  ],
  ...['1969-12-31', '1970-01-01T00:00:00+00:01', '9999-12-31T23:59:59-00:01', '0000-01-01'],
  ...['', 'never', 'tomorrow', '1700000000000', '٢٠٢٦-٠١-٠١', `2026-01-01T10:00:00.${'1'.repeat(10)}Z`],
  ...[null, undefined, 20260101, new Date(0), ['2026-01-01'], { toString: () => '2026-01-01' }],
];

describe('parseTime', () => {
  for (const [text, first, last] of read) {
    it(`takes ${text} for ${first} or ${last}`, () => {
      expect(
        [parseTime(text, 'first'), parseTime(text, 'last')].map((time) => time !== null && writeTime(time)),
      ).to.eql([first, last]);
    });
  }

  for (const text of refused) {
    it(`takes ${JSON.stringify(text)} (${typeof text}) for no time`, () => {
      expect([parseTime(text, 'first'), parseTime(text, 'last')]).to.eql([null, null]);
    });
  }

  it('reads every time that writeTime writes', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) }), (time) => {
        expect(parseTime(writeTime(time), 'last')).to.equal(time);
      }),
    );
  });
});

function same(text: string, time: string): [string, string, string][] {
  return [[text, time, time]];
}
