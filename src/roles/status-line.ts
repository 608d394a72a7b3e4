import { type Metrics, refreshMetrics } from '../base/metrics.ts';

type StatusMetrics = Pick<Metrics, 'jobs_open' | 'jobs_total' | 'refreshers'>;

/** Long, because each count reads every account. */
const intervalMs = 2_000;
const clearToEndOfLine = '\x1b[K';

/** Keeps one line on a terminal with the numbers of open jobs, and of jobs ended since the start. */
export function showStatusLine(
  metrics: StatusMetrics,
  screen: Pick<NodeJS.WriteStream, 'isTTY' | 'write'>,
): { close(): void } {
  if (!screen.isTTY) return { close: () => {} };
  const show = async () => {
    await refreshMetrics(metrics);
    // The cursor returns to the beginning of the line, so that other output overwrites it.
    screen.write(`${clearToEndOfLine}${await countJobs(metrics)}\r`);
  };
  const timer = setInterval(() => void show(), intervalMs);
  return {
    close() {
      clearInterval(timer);
      screen.write(clearToEndOfLine);
    },
  };
}

async function countJobs({ jobs_open, jobs_total }: StatusMetrics): Promise<string> {
  const [open, ended] = [(await jobs_open.get()).values, (await jobs_total.get()).values];
  const sum = (values: readonly { readonly value: number }[]) => values.reduce((total, { value }) => total + value, 0);
  const inState = (state: string) => sum(open.filter(({ labels }) => labels.state === state));
  const endedAs = (outcome: string) => sum(ended.filter(({ labels }) => labels.outcome === outcome));
  return `${inState('queued')} queued, ${inState('running')} running, ${endedAs('completed')} done, ${endedAs('failed')} failed`;
}
