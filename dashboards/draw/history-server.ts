import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { makeMetrics } from '../../src/base/metrics.ts';
import { faults, sourcesOf } from './faults.ts';
import { writeHistory } from './series.ts';

const hours = 6.5;
const usualMinutes = 45;
const usualPort = 19_390;

export const historyUrl = `http://127.0.0.1:${usualPort}`;
/** Seconds between two samples of a history. */
export const stepSeconds = 30;

/** A Prometheus that knows histories. */
export interface HistoryServer {
  readonly url: string;
  stop(): Promise<void>;
}

interface HistoryWanted {
  /** Name of the drill whose fault there is at the end; `null` for a healthy system. */
  readonly drill: string | null;
  /** Seconds since 1970. */
  readonly end: number;
}

interface ServerOptions {
  /** Rules that are judged each second, at the time of this machine. */
  readonly rules?: string;
  readonly port?: number;
  /** Samples that one query may read; Prometheus answers with an error above it. */
  readonly maxSamples?: number;
}

const bounds = new Map(
  makeMetrics()
    .registry.getMetricsAsArray()
    .map((metric) => [metric.name, (metric as { upperBounds?: number[] }).upperBounds ?? []]),
);

/** Returns a history as OpenMetrics; of some metrics alone where they are named. */
export function makeHistory({ drill, end }: HistoryWanted, metrics?: ReadonlySet<string>): string {
  const { minutes = usualMinutes } = faults.find((fault) => fault.drill === drill) ?? {};
  const options = { end, hours, stepSeconds, faultSeconds: drill === null ? null : minutes * 60 };
  const bucketsOf = (metric: string) => bounds.get(metric) ?? [];
  const sources = sourcesOf(drill).filter(({ metric }) => metrics?.has(metric) ?? true);
  return writeHistory(sources, { ...options, bucketsOf });
}

/** Starts Prometheus on a history, which may end years before or after today. */
export async function serveHistory(
  history: string,
  { rules = 'groups: []', port = usualPort, maxSamples }: ServerOptions = {},
): Promise<HistoryServer> {
  const home = mkdtempSync(join(tmpdir(), 'trawl-draw-'));
  writeFileSync(join(home, 'history'), history);
  const data = join(home, 'data');
  // For each block promtool reads the whole history again: with its usual blocks of 2 h that takes twice the processor time.
  const blocks = ['create-blocks-from', 'openmetrics', '-q', '--max-block-duration=72h'];
  execFileSync('promtool', ['tsdb', ...blocks, join(home, 'history'), data]);
  writeFileSync(join(home, 'rules.yaml'), rules);
  const settings = { global: { evaluation_interval: '1s' }, rule_files: ['rules.yaml'] };
  writeFileSync(join(home, 'prometheus.yml'), JSON.stringify(settings));
  const words = [`--config.file=${join(home, 'prometheus.yml')}`, `--storage.tsdb.path=${data}`];
  words.push('--storage.tsdb.retention.time=50y', `--web.listen-address=127.0.0.1:${port}`);
  if (maxSamples !== undefined) words.push(`--query.max-samples=${maxSamples}`);
  const child = spawn('prometheus', words, { stdio: 'ignore' });
  const url = `http://127.0.0.1:${port}`;
  const stop = async () => {
    if (child.kill()) await once(child, 'exit');
    rmSync(home, { recursive: true });
  };
  await untilReady(child, url).catch(async (error) => {
    await stop();
    throw error;
  });
  return { url, stop };
}

async function untilReady(child: ChildProcess, url: string): Promise<void> {
  for (;;) {
    const isReady = await fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (child.exitCode !== null) throw new Error(`Prometheus ended with ${child.exitCode}`);
    if (isReady) return;
    await pause(50);
  }
}
