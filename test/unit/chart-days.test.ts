import { expect } from 'chai';
import { chartDays, chartHours, firstHour } from '../../src/model/chart-days.ts';

const day = 86_400_000;
const now = Date.UTC(2026, 2, 4, 12);
const entry = (daysAgo: number, kind: 'grant' | 'charge' | 'lapse' | 'overdraft', amount: number) => {
  return { at: now - daysAgo * day, kind, amount };
};

describe('the days of a chart', () => {
  const entries = [
    ...[entry(0, 'charge', 2), entry(1, 'charge', 3), entry(1, 'overdraft', 1), entry(2, 'lapse', 10)],
    ...[entry(2, 'grant', 40), entry(3, 'charge', 5), entry(3, 'grant', 15)],
  ];

  it('are each of the last ones, oldest first, with zero where nothing was counted', () => {
    const counts = { '2026-03-03': { calls: 4, credits: 3, completed: 3, failed: 1 } };
    const days = chartDays(counts, { entries: [], isWhole: true, remaining: 0 }, now, 3);
    expect(days.map((one) => `${one.day} ${one.calls} ${one.credits} ${one.completed} ${one.failed}`)).to.deep.equal([
      ...['2026-03-02 0 0 0 0', '2026-03-03 4 3 3 1', '2026-03-04 0 0 0 0'],
    ]);
  });

  it('count the credits left back from those of now', () => {
    const days = chartDays({}, { entries, isWhole: true, remaining: 35 }, now, 5);
    expect(days.map(({ remaining }) => remaining)).to.deep.equal([0, 10, 40, 37, 35]);
  });

  it('leave open what was left before the oldest entry that is known', () => {
    const days = chartDays({}, { entries: entries.slice(0, 2), isWhole: false, remaining: 35 }, now, 4);
    expect(days.map(({ remaining }) => remaining)).to.deep.equal([null, null, 37, 35]);
    const more = chartDays({}, { entries: entries.slice(0, 5), isWhole: false, remaining: 35 }, now, 4);
    expect(more.map(({ remaining }) => remaining)).to.deep.equal([null, 40, 37, 35]);
  });

  it('leave open what was left before an oldest entry of midnight, which is of the day that begins', () => {
    const midnight = { at: Date.UTC(2026, 2, 4), kind: 'charge' as const, amount: 1 };
    const days = chartDays({}, { entries: [midnight], isWhole: false, remaining: 8 }, now, 2);
    expect(days.map(({ remaining }) => remaining)).to.deep.equal([null, 8]);
  });

  it('begin at the beginning of a day of UTC', () => {
    const midnight = Date.UTC(2026, 2, 4);
    const at = [midnight, midnight - 1].map((time) => ({ at: time, kind: 'charge' as const, amount: 1 }));
    const days = chartDays({}, { entries: at, isWhole: true, remaining: 8 }, midnight, 3);
    expect(days.map(({ remaining }) => remaining)).to.deep.equal([10, 9, 8]);
  });

  it('have hours beside them, up to one that is not over, with zero where nothing was counted', () => {
    const at = Date.UTC(2026, 2, 4, 1, 30);
    expect(firstHour(at, 3)).to.equal(Date.UTC(2026, 2, 3, 23));
    const counts = { '2026-03-03T23:00:00Z': { calls: 2, credits: 1, completed: 1, failed: 0 } };
    expect(chartHours(counts, at, 3).map(({ hour, calls }) => [hour, calls])).to.deep.equal([
      ['2026-03-03T23:00:00Z', 2],
      ['2026-03-04T00:00:00Z', 0],
      ['2026-03-04T01:00:00Z', 0],
    ]);
  });
});
