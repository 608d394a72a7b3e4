// Draws every dashboard, healthy and in each drill: node dashboards/draw/draw.ts [--docs] [--state WORDS] FOLDER
//   --docs          only what docs/drills.md shows: all that is healthy, and of each drill the dashboard that shows it best
//   --state WORDS   only the states whose name contains this
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Browser, chromium } from 'playwright-core';
import { makeMetrics } from '../../src/base/metrics.ts';
import { drills } from '../../test/watch/drills.ts';
import { boards } from '../boards.ts';
import { makeDashboard } from '../panels.ts';
import { faults, sourcesOf } from './faults.ts';
import { historyEnd } from './healthy.ts';
import { listFiring } from './judge-alerts.ts';
import { type PageServer, servePages } from './page-server.ts';
import { writeHistory } from './series.ts';

const hours = 6.5;
const shownHours = 6;
const stepSeconds = 30;
const faultSeconds = 45 * 60;
const widths = [1400, 900] as const;
const themes = ['dark', 'light'] as const;
const prometheusPort = 19_390;
const chromiumPath = process.env.CHROMIUM ?? '/usr/bin/chromium';

const { values: options, positionals } = parseArgs({
  options: { docs: { type: 'boolean', default: false }, state: { type: 'string', default: '' } },
  allowPositionals: true,
});
const [folder = '.cache/pictures'] = positionals;

interface Report {
  readonly problems: readonly string[];
  readonly shown: readonly { readonly title: string; readonly points: number }[];
}

const bounds = new Map(
  makeMetrics()
    .registry.getMetricsAsArray()
    .map((metric) => [metric.name, (metric as { upperBounds?: number[] }).upperBounds ?? []]),
);

/** Starts Prometheus on a history that ends years before or after today. */
async function startHistory(folder: string, drill: string | null): Promise<ChildProcess> {
  const options = { end: historyEnd, hours, stepSeconds, faultSeconds: drill === null ? null : faultSeconds };
  const bucketsOf = (metric: string) => bounds.get(metric) ?? [];
  writeFileSync(join(folder, 'history'), writeHistory(sourcesOf(drill), { ...options, bucketsOf }));
  const data = join(folder, 'data');
  execFileSync('promtool', ['tsdb', 'create-blocks-from', 'openmetrics', '-q', join(folder, 'history'), data]);
  writeFileSync(join(folder, 'prometheus.yml'), '{}');
  const words = [`--config.file=${join(folder, 'prometheus.yml')}`, `--storage.tsdb.path=${data}`];
  const listen = `--web.listen-address=127.0.0.1:${prometheusPort}`;
  const child = spawn('prometheus', [...words, '--storage.tsdb.retention.time=50y', listen], { stdio: 'ignore' });
  for (;;) {
    const isReady = await fetch(`http://127.0.0.1:${prometheusPort}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isReady) return child;
    if (child.exitCode !== null) throw new Error(`Prometheus ended with ${child.exitCode}`);
    await pause(50);
  }
}

/** Draws the dashboards of one state and returns what is wrong with them. */
async function drawState(drill: string | null, tools: { browser: Browser; pages: PageServer }) {
  const problems: string[] = [];
  const home = mkdtempSync(join(tmpdir(), 'trawl-draw-'));
  const prometheus = await startHistory(home, drill);
  try {
    const firing = await listFiring(`http://127.0.0.1:${prometheusPort}`, historyEnd);
    const wanted = Object.keys(drills.find(({ name }) => name === drill)?.alerts ?? {}).sort();
    if (firing.join() !== wanted.join()) problems.push(`${drill ?? 'healthy'}: fires ${firing}, not ${wanted}`);
    const name = drill === null ? 'healthy' : drill.toLowerCase().replaceAll(/\W+/g, '-').replace(/-$/, '');
    for (const board of boards)
      for (const theme of themes)
        for (const width of widths) {
          const file = join(folder, `${name}-${board.name}-${theme}-${width}.png`);
          if (options.docs && !isInDocs({ board: board.name, theme, width, file }, drill)) continue;
          const { problems: found, shown } = await drawOne(tools, { board: board.name, theme, width, file });
          problems.push(...found.map((one) => `${file}: ${one}`));
          const empty = shown.filter(({ points }) => points === 0).map(({ title }) => title);
          if (drill === null && empty.length > 0) problems.push(`${file}: empty in a healthy system: ${empty}`);
        }
  } finally {
    if (prometheus.kill()) await once(prometheus, 'exit');
    rmSync(home, { recursive: true });
  }
  return problems;
}

function isInDocs({ board, theme, width }: Picture, drill: string | null): boolean {
  const best = faults.find((fault) => fault.drill === drill)?.board;
  return drill === null || (board === best && theme === 'dark' && width === widths[0]);
}

interface Picture {
  readonly board: string;
  readonly theme: (typeof themes)[number];
  readonly width: number;
  readonly file: string;
}

async function drawOne({ browser, pages }: { browser: Browser; pages: PageServer }, picture: Picture): Promise<Report> {
  const { board, theme, width, file } = picture;
  // A table draws only the rows that are in view.
  const page = await browser.newPage({ viewport: { width, height: 4000 }, colorScheme: theme });
  try {
    const times = { from: String((historyEnd - shownHours * 3600) * 1000), to: String(historyEnd * 1000) };
    const words = new URLSearchParams({ ...times, board: `/board/${board}`, theme, scrape: String(stepSeconds) });
    await page.goto(`${pages.url}/?${words}`);
    await page.waitForFunction('document.title === "drawn"', null, { timeout: 60_000 });
    await page.locator('#root').screenshot({ path: `${file}.png` });
    // A palette of its own colors makes a picture a third as large.
    const filter = 'split[a][b];[a]palettegen=max_colors=64:stats_mode=single[p];[b][p]paletteuse=dither=none';
    execFileSync('ffmpeg', [
      '-v',
      'error',
      '-y',
      '-i',
      `${file}.png`,
      '-vf',
      filter,
      '-compression_level',
      '100',
      file,
    ]);
    rmSync(`${file}.png`);
    return (await page.evaluate('globalThis.report')) as Report;
  } finally {
    await page.close();
  }
}

mkdirSync(folder, { recursive: true });
const made = Object.fromEntries(boards.map((board) => [board.name, JSON.stringify(makeDashboard(board))]));
const pages = await servePages(made, `http://127.0.0.1:${prometheusPort}`);
const args = ['--no-sandbox', '--disable-gpu', '--force-color-profile=srgb', '--font-render-hinting=none'];
const browser = await chromium.launch({ executablePath: chromiumPath, args });
const problems: string[] = [];
try {
  for (const drill of [null, ...faults.map((fault) => fault.drill)]) {
    if (!(drill ?? 'healthy').includes(options.state)) continue;
    problems.push(...(await drawState(drill, { browser, pages })));
  }
} finally {
  await browser.close();
  await pages.close();
}
for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
