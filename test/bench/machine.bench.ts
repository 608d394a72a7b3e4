import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { python } from '../support/media.ts';
import { aFolder } from '../support/redis.ts';
import { startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';
import { type RunningUp, startUp } from '../support/up.ts';
import { residentOf, treeOf } from './footprint.ts';
import { cpuMicros } from './load.ts';
import type { Measurement } from './measurement.ts';
import { compareSitePatterns } from './site-patterns.ts';

const rounds = 9;
const leastStarts = 3;
const mostStarts = 12;
const idleSeconds = 20;
const mostSeconds = 3;
const mostMegabytes = 350;

/** The cost of one machine: a start, a small job beside the bare command, and idling. */
export async function* measure(): AsyncGenerator<Measurement> {
  yield compareSitePatterns();
  const { folder, remove } = aFolder();
  const source = await startSource();
  const env = { TRAWL_DATA: join(folder, 'data'), TRAWL_EGRESS_ALLOW: '127.0.0.1:*' };
  const took: number[] = [];
  let up = await startUp(env);
  try {
    const key = await until(() => /'x-api-key: (\S+)'/.exec(up.output())?.[1], 5, 'the key');
    // A busy machine gets more turns.
    while (took.length < leastStarts || (Math.min(...took) > mostSeconds && took.length < mostStarts)) {
      await stop(up);
      const began = performance.now();
      up = await startUp(env);
      took.push((performance.now() - began) / 1000);
    }
    yield startOf(took);
    yield await compareJobs(up, key ?? '', `${source.url}/films/clip.mp4`, folder);
    yield* await beIdle(up.process.pid ?? 0);
  } finally {
    await stop(up);
    await source.stop();
    remove();
  }
}

async function stop({ process, ended }: RunningUp): Promise<void> {
  process.kill('SIGTERM');
  await ended;
}

/** The fastest counts: what else the machine does only makes things slower. */
function startOf(took: readonly number[]): Measurement {
  const fastest = Math.min(...took);
  return {
    what: `start of trawl up until it answers / ${mostSeconds} s`,
    ratio: fastest / mostSeconds,
    bound: { most: 1 },
    because: `${took.map((seconds) => seconds.toFixed(2)).join(', ')} s`,
  };
}

/** A job from its submission to a file of the caller's, in turns with the command that makes the same file; the fastest count. */
async function compareJobs(up: RunningUp, key: string, film: string, folder: string): Promise<Measurement> {
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const [job, command] = [
      await timed(() => runJob(up, key, film, folder)),
      await timed(() => runYtDlp(film, folder)),
    ];
    // The first round warms up.
    if (round > 0) ours.push(job);
    if (round > 0) theirs.push(command);
  }
  const [job, command] = [Math.min(...ours), Math.min(...theirs)];
  return {
    what: 'small job, submit to file / the bare yt-dlp command',
    ratio: job / command,
    bound: { most: 2 },
    because: `${inMilliseconds(ours)} : ${inMilliseconds(theirs)}`,
  };
}

function inMilliseconds(times: readonly number[]): string {
  const [fastest = 0, middle = 0, slowest = 0] = [0, 0.5, 1].map((part) => {
    return times.toSorted((a, b) => a - b)[Math.floor(part * (times.length - 1))] ?? 0;
  });
  return `${fastest.toFixed(0)} ms (median ${middle.toFixed(0)}, slowest ${slowest.toFixed(0)})`;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

async function runJob({ url }: RunningUp, key: string, film: string, folder: string): Promise<void> {
  const ask = async (path: string) => {
    const answer = await fetch(url + path, { headers: { 'x-api-key': key } });
    return JSON.parse(await answer.text());
  };
  const { job_id } = await ask(`/v1/video/download?query=${film}`);
  const { result } = await ask(`/v1/jobs/${job_id}?wait=30`);
  const file = await fetch(result.response);
  writeFileSync(join(folder, 'ours.mp4'), await file.bytes());
}

async function runYtDlp(film: string, folder: string): Promise<void> {
  const args = ['--ignore-config', '--quiet', '--force-overwrites', '-o', 'theirs.mp4', film];
  const command = spawn(join(dirname(python), 'yt-dlp'), args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(command, 'close');
  if (code !== 0) throw new Error(`yt-dlp ended with ${code}`);
}

/** After jobs, with nothing to do. */
async function beIdle(pid: number): Promise<Measurement[]> {
  const used = () => treeOf(pid).reduce((sum, one) => sum + cpuMicros(one), 0);
  const before = used();
  await pause(idleSeconds * 1000);
  const percent = (used() - before) / idleSeconds / 10_000;
  const tree = treeOf(pid);
  const { once, each } = residentOf(tree);
  return [
    {
      what: `resident when idle / ${mostMegabytes} MB`,
      ratio: once / mostMegabytes,
      bound: { most: 1 },
      because: `${once.toFixed(0)} MB in ${tree.length} processes, each page once; ${each.toFixed(0)} MB as ps adds up`,
    },
    { what: 'CPU when idle, % of one core', ratio: percent, because: `over ${idleSeconds} s` },
  ];
}
