import { alerts } from '../../test/support/alerts.ts';

const secondsOf: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const stepSeconds = 30;

/** Returns the alerts that fire at a moment, by namespace, as the rules of the chart judge the histories of a Prometheus. */
export async function judgeAlerts(prometheus: string, end: number): Promise<ReadonlyMap<string, readonly string[]>> {
  const firing = await Promise.all(
    alerts.map(async ({ alert, expr, for: wait = '0s' }) => {
      const [, count, unit] = /^(\d+)([smhd])$/.exec(wait) ?? [];
      const seconds = Number(count) * secondsOf[unit ?? 's']!;
      const times = { start: String(end - seconds), end: String(end), step: String(stepSeconds) };
      const asked = new URLSearchParams({ query: expr, ...times });
      const { data, error } = (await (await fetch(`${prometheus}/api/v1/query_range?${asked}`)).json()) as Answer;
      if (!data) throw new Error(`${alert}: ${error}`);
      const needed = seconds / stepSeconds + 1;
      const lasting = data.result.filter(({ values }) => values.length >= needed);
      return [...new Set(lasting.map(({ metric }) => metric.namespace ?? ''))].map((namespace) => ({
        alert,
        namespace,
      }));
    }),
  );
  const found = Map.groupBy(firing.flat(), ({ namespace }) => namespace);
  return new Map([...found].map(([namespace, all]) => [namespace, all.map(({ alert }) => alert).sort()]));
}

interface Answer {
  readonly data?: { readonly result: readonly Result[] };
  readonly error?: string;
}

interface Result {
  readonly metric: { readonly namespace?: string };
  readonly values: readonly unknown[];
}
