import { type Color, type Limits, noLeader, type Panel } from './panels.ts';

/** What the worst color of a row of numbers stands for. */
export const worstWords = ['good', 'look', 'act'] as const;
const ranks: Readonly<Record<Color, number>> = { green: 0, yellow: 1, red: 2 };

/** Returns the query for the worst color of some numbers: 0 while all are green, 1 for yellow, 2 for red or without a leader. */
export function queryWorst(panels: readonly Panel[]): string {
  const ranked = panels.flatMap(({ queries, limits = [], empty }) =>
    Object.keys(queries).map((query) => {
      if (limits.length < 2) return '';
      const rank = queryRank(query, limits);
      return empty === noLeader ? `(${rank} or vector(${ranks.red}))` : rank;
    }),
  );
  // Without a label of its own, `or` takes each for the same series.
  const apart = ranked.filter(Boolean).map((query, n) => `label_replace(${query}, "number", "${n}", "", "")`);
  return `max(${apart.join(' or ')}) or vector(0)`;
}

/** Adds up the steps from one color to the next that a value has passed. */
function queryRank(query: string, limits: Limits): string {
  const rankAt = (n: number) => ranks[limits[n]![1]];
  const steps = limits.slice(1).map(([from], n) => `${rankAt(n + 1) - rankAt(n)} * ((${query}) >= bool ${from})`);
  return [rankAt(0), ...steps].join(' + ');
}
