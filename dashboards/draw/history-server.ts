import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { makeMetrics } from '../../src/base/metrics.ts';
import { sourcesOf } from './faults.ts';
import { writeHistory } from './series.ts';

const hours = 6.5;
const faultSeconds = 45 * 60;
const port = 19_390;

export const historyUrl = `http://127.0.0.1:${port}`;
/** Seconds between two samples of a history. */
export const stepSeconds = 30;

/** A Prometheus at `historyUrl` that knows the history of a system. */
export interface HistoryServer {
  stop(): Promise<void>;
}

interface HistoryWanted {
  /** Name of the drill whose fault lasts for the last 45 minutes; `null` for a healthy system. */
  readonly drill: string | null;
  /** Seconds since 1970. */
  readonly end: number;
  /** Rules that are judged each second, at the time of this machine. */
  readonly rules?: string;
}

const bounds = new Map(
  makeMetrics()
    .registry.getMetricsAsArray()
    .map((metric) => [metric.name, (metric as { upperBounds?: number[] }).upperBounds ?? []]),
);

/** Starts Prometheus on a history, which may end years before or after today. */
export async function serveHistory({ drill, end, rules = 'groups: []' }: HistoryWanted): Promise<HistoryServer> {
  const home = mkdtempSync(join(tmpdir(), 'trawl-draw-'));
  const options = { end, hours, stepSeconds, faultSeconds: drill === null ? null : faultSeconds };
  const bucketsOf = (metric: string) => bounds.get(metric) ?? [];
  writeFileSync(join(home, 'history'), writeHistory(sourcesOf(drill), { ...options, bucketsOf }));
  const data = join(home, 'data');
  execFileSync('promtool', ['tsdb', 'create-blocks-from', 'openmetrics', '-q', join(home, 'history'), data]);
  writeFileSync(join(home, 'rules.yaml'), rules);
  const settings = { global: { evaluation_interval: '1s' }, rule_files: ['rules.yaml'] };
  writeFileSync(join(home, 'prometheus.yml'), JSON.stringify(settings));
  const words = [`--config.file=${join(home, 'prometheus.yml')}`, `--storage.tsdb.path=${data}`];
  const listen = `--web.listen-address=127.0.0.1:${port}`;
  const child = spawn('prometheus', [...words, '--storage.tsdb.retention.time=50y', listen], { stdio: 'ignore' });
  const stop = async () => {
    if (child.kill()) await once(child, 'exit');
    rmSync(home, { recursive: true });
  };
  await untilReady(child).catch(async (error) => {
    await stop();
    throw error;
  });
  return { stop };
}

async function untilReady(child: ChildProcess): Promise<void> {
  for (;;) {
    const isReady = await fetch(`${historyUrl}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (child.exitCode !== null) throw new Error(`Prometheus ended with ${child.exitCode}`);
    if (isReady) return;
    await pause(50);
  }
}
