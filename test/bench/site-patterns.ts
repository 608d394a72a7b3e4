import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { python } from '../support/media.ts';
import { root } from '../support/tree.ts';
import type { Measurement } from './measurement.ts';

const rounds = 5;

/** Prints the processor time of asking every site whether a URL is its own. */
const script = `
import sys, time
sys.path.insert(0, sys.argv[1])
import driver
classes = driver.yt_dlp.extractor.gen_extractor_classes()
began = time.process_time()
if sys.argv[2] == 'lazy':
    driver.sites.compile_lazily(classes)
for site in classes:
    site.suitable('https://media.example/film.mp4')
print(time.process_time() - began)
`;

/** The first URL of a process, the fastest of some rounds: other work of the machine only makes one slower. */
export function compareSitePatterns(): Measurement {
  const took = { all: Number.POSITIVE_INFINITY, lazy: Number.POSITIVE_INFINITY };
  for (let round = 0; round < rounds; round++) {
    for (const way of ['all', 'lazy'] as const) took[way] = Math.min(took[way], measure(way));
  }
  return {
    what: 'first URL of a process: patterns of all sites compiled : lazy ones',
    ratio: took.all / took.lazy,
    bound: { least: 1.1 },
    optimisation: 'src/media/sites.py',
    because: `${(took.all * 1000).toFixed(0)} ms : ${(took.lazy * 1000).toFixed(0)} ms of CPU`,
  };
}

function measure(way: string): number {
  return Number(execFileSync(python, ['-I', '-c', script, join(root, 'src/media'), way], { encoding: 'utf8' }));
}
