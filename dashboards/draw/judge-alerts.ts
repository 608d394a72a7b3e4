import { alerts } from '../../test/support/alerts.ts';

const secondsOf: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const stepSeconds = 30;

/** Returns the alerts that fire at a moment, as the rules of the chart judge the history of a Prometheus. */
export async function listFiring(prometheus: string, end: number): Promise<string[]> {
  const firing = await Promise.all(
    alerts.map(async ({ alert, expr, for: wait = '0s' }) => {
      const [, count, unit] = /^(\d+)([smhd])$/.exec(wait) ?? [];
      const seconds = Number(count) * secondsOf[unit ?? 's']!;
      const times = { start: String(end - seconds), end: String(end), step: String(stepSeconds) };
      const asked = new URLSearchParams({ query: expr, ...times });
      const { data, error } = (await (await fetch(`${prometheus}/api/v1/query_range?${asked}`)).json()) as Answer;
      if (!data) throw new Error(`${alert}: ${error}`);
      const needed = seconds / stepSeconds + 1;
      return data.result.some(({ values }) => values.length >= needed) ? [alert] : [];
    }),
  );
  return firing.flat().sort();
}

interface Answer {
  readonly data?: { readonly result: readonly { readonly values: readonly unknown[] }[] };
  readonly error?: string;
}
