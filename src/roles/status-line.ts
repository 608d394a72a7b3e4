import { type Metrics, refreshMetrics } from '../base/metrics.ts';

/** Where a person may watch. */
export interface Screen {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

type StatusMetrics = Pick<Metrics, 'jobs_open' | 'jobs_total' | 'refreshers'>;

/** Each look asks for every account. */
const lookMilliseconds = 2_000;
/** To the end of the line. */
const clear = '\x1b[K';

/** Keeps one line on a terminal that tells how many jobs are open and how many have ended since the start. */
export function showStatusLine(metrics: StatusMetrics, screen: Screen): { close(): void } {
  if (!screen.isTTY) return { close: () => {} };
  const show = async () => {
    await refreshMetrics(metrics);
    const sentence = await countJobs(metrics);
    // The cursor goes back to where the line begins, so that whatever else is written covers it.
    screen.write(`${clear}${sentence}\r`);
  };
  const timer = setInterval(() => void show(), lookMilliseconds);
  return {
    close() {
      clearInterval(timer);
      screen.write(clear);
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
