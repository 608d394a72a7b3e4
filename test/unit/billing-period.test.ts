import { expect } from 'chai';
import fc from 'fast-check';
import { monthOf, periodAt } from '../../src/model/billing-period.ts';

const at = (text: string) => Date.parse(text.length > 10 ? text : `${text}T00:00:00Z`);
const day = 86_400_000;

describe('periodAt', () => {
  const rows: [anchor: string, now: string, start: string, end: string][] = [
    ['2025-01-31', '2025-01-31', '2025-01-31', '2025-02-28'],
    ['2025-01-31', '2025-02-27T23:59:59.999Z', '2025-01-31', '2025-02-28'],
    ['2025-01-31', '2025-02-28', '2025-02-28', '2025-03-31'],
    ['2025-01-31', '2025-03-30', '2025-02-28', '2025-03-31'],
    ['2025-01-31', '2025-03-31', '2025-03-31', '2025-04-30'],
    ['2024-01-31', '2024-02-29', '2024-02-29', '2024-03-31'],
    ['2024-02-29', '2025-02-28', '2025-02-28', '2025-03-29'],
    ['2024-02-29', '2028-02-29', '2028-02-29', '2028-03-29'],
    ['2025-05-15T10:30:00.250Z', '2025-05-15T10:30:00.250Z', '2025-05-15T10:30:00.250Z', '2025-06-15T10:30:00.250Z'],
    ['2025-05-15T10:30:00.250Z', '2025-06-15T10:30:00.249Z', '2025-05-15T10:30:00.250Z', '2025-06-15T10:30:00.250Z'],
    ['2025-01-30T23:59:59.999Z', '2025-02-28T23:59:59.999Z', '2025-02-28T23:59:59.999Z', '2025-03-30T23:59:59.999Z'],
    ['2024-11-30', '2025-01-01', '2024-12-30', '2025-01-30'],
    ['2024-11-30', '2034-11-29', '2034-10-30', '2034-11-30'],
    ['2025-03-31', '2025-03-01', '2025-02-28', '2025-03-31'],
  ];
  for (const [anchor, now, start, end] of rows) {
    it(`D50: anchored at ${anchor}, ${now} lies in ${start} to ${end}`, () => {
      expect(periodAt(at(anchor), at(now))).to.eql({ start: at(start), end: at(end) });
    });
  }

  const time = fc.integer({ min: 0, max: Date.UTC(2200, 0, 1) });

  it('tiles time without gap or overlap, whatever the anchor', () => {
    fc.assert(
      fc.property(time, time, (anchor, now) => {
        const { start, end } = periodAt(anchor, now);
        expect(start <= now && now < end).to.equal(true);
        for (const inside of [start, end - 1]) expect(periodAt(anchor, inside)).to.eql({ start, end });
        expect(periodAt(anchor, end).start).to.equal(end);
        expect(periodAt(anchor, start - 1).end).to.equal(start);
      }),
    );
  });

  it('begins on the day and time of the anchor, or on the last day of a month that is too short', () => {
    fc.assert(
      fc.property(time, time, (anchor, now) => {
        const [start, wanted] = [new Date(periodAt(anchor, now).start), new Date(anchor)];
        expect(start.toISOString().slice(11)).to.equal(wanted.toISOString().slice(11));
        const isLastDay = new Date(start.getTime() + day).getUTCDate() === 1;
        const isDay = start.getUTCDate() === wanted.getUTCDate();
        expect(isDay || (isLastDay && start.getUTCDate() < wanted.getUTCDate())).to.equal(true);
      }),
    );
  });

  it('begins a period at the anchor itself', () => {
    fc.assert(
      fc.property(time, (anchor) => {
        expect(periodAt(anchor, anchor).start).to.equal(anchor);
      }),
    );
  });
});

describe('monthOf', () => {
  const rows: [now: string, start: string, end: string][] = [
    ['2025-01-01', '2025-01-01', '2025-02-01'],
    ['2024-02-29T23:59:59.999Z', '2024-02-01', '2024-03-01'],
    ['2025-12-31T23:59:59.999Z', '2025-12-01', '2026-01-01'],
  ];
  for (const [now, start, end] of rows) {
    it(`puts ${now} into the month from ${start} to ${end}`, () =>
      expect(monthOf(at(now))).to.eql({ start: at(start), end: at(end) }));
  }
});
