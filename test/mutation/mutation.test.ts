import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MutantResult } from '@stryker-mutator/api/core';
import { Stryker } from '@stryker-mutator/core';
import { expect } from 'chai';
import { read, root } from '../support/tree.ts';
import { type Area, listAreas } from './areas.ts';

const leastPercent = 80;
const folder = '.cache/mutation';

describe('mutants of the rules', function () {
  this.timeout(0);

  const { TMPDIR, ROUNDS } = process.env;
  before(() => {
    // A process that is stopped because its mutant hangs leaves temporary files behind.
    process.env.TMPDIR = mkdtempSync(join(tmpdir(), 'mutants-'));
    // The long form of a test would run for each mutant.
    delete process.env.ROUNDS;
  });
  after(() => {
    rmSync(tmpdir(), { recursive: true });
    Object.assign(process.env, { TMPDIR }, ROUNDS && { ROUNDS });
  });

  for (const area of listAreas()) {
    it(`tests kill at least ${leastPercent} % of the mutants of ${area.name}`, async () => {
      const startMs = performance.now();
      const percent = report(area.name, await runMutants(area), (performance.now() - startMs) / 60_000);
      expect(percent).to.be.at.least(leastPercent);
    });
  }
});

function runMutants({ name, files, specs, perProcessor }: Area): Promise<MutantResult[]> {
  const stryker = new Stryker({
    mutate: [...files],
    testRunner: 'mocha',
    plugins: ['./test/mutation/runner.ts'],
    mochaOptions: { spec: [...specs] },
    coverageAnalysis: 'perTest',
    disableTypeChecks: false,
    tsconfigFile: 'none',
    ignorePatterns: ['*', '!src', '!src/**', '!test', '!test/**', '!docs', '!docs/**', '!package.json'],
    tempDirName: `${folder}/${name}`,
    concurrency: perProcessor * availableParallelism(),
    // The runner ends a test that waits without end; this ends one that computes without end.
    timeoutMS: 30_000,
    reporters: ['dots'],
    // Each import of the tests stays in memory.
    maxTestRunnerReuse: 200,
    warnings: false,
    allowConsoleColors: false,
    thresholds: { high: 100, low: leastPercent, break: null },
  });
  return stryker.runMutationTest();
}

/** Prints an area's figures and the mutants that no test noticed, and keeps them in a file. Returns the percentage killed. */
function report(name: string, mutants: readonly MutantResult[], minutes: number): number {
  const count = (...statuses: MutantResult['status'][]) =>
    mutants.filter((one) => statuses.includes(one.status)).length;
  const timeouts = count('Timeout');
  const killed = count('Killed') + timeouts;
  const left = mutants.filter(({ status }) => status === 'Survived' || status === 'NoCoverage');
  const percent = Math.round((1000 * killed) / (killed + left.length)) / 10;
  const figures = `${name}: ${mutants.length} mutants, ${killed} killed (${timeouts} by timeout), ${left.length} left, ${percent} % killed in ${minutes.toFixed(1)} minutes`;
  const text = [figures, ...left.map(describeMutant).sort(), ''].join('\n');
  mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, folder, `${name}.txt`), text);
  console.log(text);
  return percent;
}

function describeMutant({ fileName, location, replacement, status, mutatorName }: MutantResult): string {
  const path = fileName.slice(fileName.indexOf('src/'));
  const { start, end } = location;
  const lines = read(path)
    .split('\n')
    .slice(start.line - 1, end.line);
  const before = lines.join(' ').slice(start.column - 1, lines.length === 1 ? end.column - 1 : undefined);
  const short = (code: string) => code.replace(/\s+/g, ' ').slice(0, 60);
  const untested = status === 'NoCoverage' ? ' (no test)' : '';
  return `${path}:${start.line}:${start.column}: ${mutatorName}: ${short(before)} → ${short(replacement ?? '')}${untested}`;
}
