import { globSync } from 'node:fs';
import { join } from 'node:path';
import { compileCache } from '../support/compile-cache.ts';
import type { Measure, Measurement } from './measurement.ts';

/** Only the benches of these names run, when any is given: `record` is record.bench.ts. */
const wanted = process.argv.slice(2);
const widths = { what: 62, ratio: 6, bound: 8, verdict: 9 };

// Programs that are measured start as `./trawl` starts them.
process.env.NODE_COMPILE_CACHE ??= compileCache;

let [measured, short] = [0, 0];
console.log(line('', 'ratio', 'bound', '', ''));
for (const path of globSync('*.bench.ts', { cwd: import.meta.dirname }).sort()) {
  if (wanted.length > 0 && !wanted.includes(path.replace('.bench.ts', ''))) continue;
  const { measure } = (await import(join(import.meta.dirname, path))) as { measure: Measure };
  for await (const found of measure()) {
    measured += 1;
    if (!isReached(found)) short += 1;
    console.log(describe(found));
  }
}
console.log(`${measured} measured, ${short} short`);
process.exitCode = measured === 0 || short > 0 ? 1 : 0;

function isReached({ ratio, bound }: Measurement): boolean {
  if (!bound) return true;
  return 'least' in bound ? ratio >= bound.least : ratio <= bound.most;
}

function describe(found: Measurement): string {
  const { what, ratio, bound, because } = found;
  if (!bound) return line(what, ratio.toFixed(2), '', 'reported', because);
  const limit = 'least' in bound ? `≥ ${bound.least}` : `≤ ${bound.most}`;
  return line(what, ratio.toFixed(2), limit, isReached(found) ? 'ok' : 'short', because);
}

function line(what: string, ratio: string, bound: string, verdict: string, because: string): string {
  const { what: first, ratio: second, bound: third, verdict: fourth } = widths;
  const cells = [what.padEnd(first), ratio.padStart(second), bound.padStart(third), ` ${verdict}`.padEnd(fourth)];
  return `${cells.join(' ')}  ${because}`.trimEnd();
}
