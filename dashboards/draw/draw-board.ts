import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { extname } from 'node:path';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import { boards } from '../boards.ts';
import { makeDashboard } from '../panels.ts';
import { historyUrl, stepSeconds } from './history-server.ts';
import { servePages } from './page-server.ts';
import type { Picture } from './picture.ts';

interface Report {
  readonly problems: readonly string[];
  readonly shown: readonly Shown[];
}

interface Shown {
  readonly title: string;
  readonly points: number;
}

/** Draws dashboards out of a Prometheus, in Chromium. */
export interface Drawer {
  /**
   * Draws the six hours before `end`, in seconds since 1970, and returns the points that each panel showed. Throws, and writes no file,
   * when a query or a panel fails: its panel would look as if there were nothing to see.
   */
  draw(picture: Picture, end: number): Promise<readonly Shown[]>;
  close(): Promise<void>;
}

const run = promisify(execFile);
const shownHours = 6;
const chromiumPath = process.env.CHROMIUM ?? '/usr/bin/chromium';
// A palette of its own colors makes a picture a third as large, and WebP without loss takes another 40 % off a PNG.
const palette = 'split[a][b];[a]palettegen=max_colors=64:stats_mode=single[p];[b][p]paletteuse=dither=none';
const encodings: Readonly<Record<string, readonly string[]>> = {
  '.png': ['-compression_level', '100'],
  '.webp': ['-c:v', 'libwebp', '-lossless', '1', '-compression_level', '5', '-quality', '90'],
};

export async function openDrawer(prometheus = historyUrl): Promise<Drawer> {
  const made = Object.fromEntries(boards.map((board) => [board.name, JSON.stringify(makeDashboard(board))]));
  const pages = await servePages(made, prometheus);
  const args = ['--no-sandbox', '--disable-gpu', '--force-color-profile=srgb', '--font-render-hinting=none'];
  const browser = await chromium.launch({ executablePath: chromiumPath, args });
  return {
    async draw({ board, theme, width, file }, end) {
      // A table draws only the rows that are in view.
      const page = await browser.newPage({ viewport: { width, height: 4000 }, colorScheme: theme });
      try {
        const times = { from: String((end - shownHours * 3600) * 1000), to: String(end * 1000) };
        const words = new URLSearchParams({ ...times, board: `/board/${board}`, theme, scrape: String(stepSeconds) });
        await page.goto(`${pages.url}/?${words}`);
        await page.waitForFunction('document.title === "drawn"', null, { timeout: 120_000 });
        const { problems, shown } = (await page.evaluate('globalThis.report')) as Report;
        if (problems.length > 0) throw new Error(`${board}, ${theme} ${width}: ${problems.join('\n')}`);
        await page.locator('#root').screenshot({ path: `${file}.png` });
        const input = ['-v', 'error', '-y', '-i', `${file}.png`];
        await run('ffmpeg', [...input, '-vf', palette, ...(encodings[extname(file)] ?? []), file]);
        rmSync(`${file}.png`);
        return shown;
      } finally {
        await page.close();
      }
    },
    async close() {
      await browser.close();
      await pages.close();
    },
  };
}
