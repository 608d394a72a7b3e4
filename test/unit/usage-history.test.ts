import { expect } from 'chai';
import { countLines, historyRange, isInRange, maxHistoryDays, sumDays } from '../../src/model/usage-history.ts';

const day = 86_400_000;
const now = Date.UTC(2026, 2, 4, 12);
const today = Date.UTC(2026, 2, 4);
const line = (status: number, credits: number, at = now) => ({ at, status, credits });

describe('usage history', () => {
  const ranges: [title: string, from: number | undefined, to: number | undefined, wanted: [number, number] | null][] = [
    ['30 days up to today', undefined, undefined, [today - 29 * day, today]],
    ['30 days up to a day', undefined, today - 9 * day, [today - 38 * day, today - 9 * day]],
    ['a day up to today', today - 3 * day, undefined, [today - 3 * day, today]],
    ['one day', today, today, [today, today]],
    ['nothing before 1970', undefined, 0, [0, 0]],
    [
      'as many days as there may be',
      today - (maxHistoryDays - 1) * day,
      today,
      [today - (maxHistoryDays - 1) * day, today],
    ],
    ['one day too many', today - maxHistoryDays * day, today, null],
    ['an end before its beginning', today, today - day, null],
    ['a beginning in the future', today + day, undefined, null],
  ];
  for (const [title, from, to, wanted] of ranges) {
    it(`${wanted ? 'takes' : 'refuses'} ${title}`, () => {
      expect(historyRange(from, to, now)).to.deep.equal(wanted && { from: wanted[0], to: wanted[1] });
    });
  }

  it('has the first and the last day of a range, and none beside them', () => {
    const range = { from: today - day, to: today };
    const days = ['2026-03-02', '2026-03-03', '2026-03-04', '2026-03-05'];
    expect(days.filter((one) => isInRange(one, range))).to.deep.equal(['2026-03-03', '2026-03-04']);
  });

  it('counts a request once, and the end of its job as an outcome', () => {
    const free = countLines('free', [line(202, 0), line(200, 0), line(429, 0), line(500, 0)]);
    expect(free).to.deep.equal({ '2026-03-04': { calls: 4, credits: 0, completed: 0, failed: 0 } });
    const paid = countLines('paid', [line(200, 1), line(201, 1), line(201, 0), line(404, 0), line(500, 0)]);
    expect(paid).to.deep.equal({ '2026-03-04': { calls: 1, credits: 2, completed: 3, failed: 2 } });
  });

  it('puts each line on its own UTC day, and adds up day by day', () => {
    const lines = [line(201, 1, today - 1), line(201, 1, today)];
    const one = { calls: 0, credits: 1, completed: 1, failed: 0 };
    expect(countLines('paid', lines)).to.deep.equal({ '2026-03-03': one, '2026-03-04': one });
    const twice = { calls: 0, credits: 2, completed: 2, failed: 0 };
    const sum = sumDays([countLines('paid', lines), countLines('paid', lines.slice(1)), {}]);
    expect(sum).to.deep.equal({ '2026-03-03': one, '2026-03-04': twice });
  });
});
