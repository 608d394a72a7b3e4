import { spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { root } from '../support/tree.ts';
import { apiMutants } from './api.ts';
import { daysMutants } from './days.ts';
import { gateMutants } from './gate.ts';
import { jobMutants } from './job.ts';
import { modelMutants } from './model.ts';
import type { Mutant } from './mutant.ts';
import { recordMutants } from './record.ts';
import { storeMutants } from './store.ts';

const parts = [recordMutants, storeMutants, gateMutants, apiMutants, modelMutants, jobMutants, daysMutants];
const all: readonly Mutant[] = parts.flat();
const rows = [...new Set(all.flatMap((mutant) => mutant.rows))];
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
const isLong = process.env.ROUNDS !== undefined;
const drawnRows = isLong ? draw(rows, 30, (row) => row) : [];
const drawn = isLong ? [...new Set([...recordMutants, ...drawnRows.flatMap(drawForRow)])] : drawMutants(all, 12);

const title = [`broken on purpose (${drawn.length} of ${all.length} lines, SEED=${seed})`, ...drawnRows].join(' ');

describe(title, function () {
  this.timeout(isLong ? 600_000 : 120_000);
  let tree: string;
  before(() => {
    tree = mkdtempSync(join(tmpdir(), 'trawl-test-'));
    for (const path of ['src', 'test', 'package.json', '.mocharc.json', 'trawl']) {
      cpSync(join(root, path), join(tree, path), { recursive: true });
    }
    symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));
  });
  after(() => rmSync(tree, { recursive: true, force: true }));

  it('each line stands once in its file', () => {
    const lost = all.filter(({ file, from }) => readFileSync(join(root, file), 'utf8').split(from).length !== 2);
    expect(lost.map(({ file, from }) => `${file}: ${from}`)).to.deep.equal([]);
  });

  it('each row that is named stands in docs/contract.md', () => {
    const contract = readFileSync(join(root, 'docs/contract.md'), 'utf8');
    expect(rows.filter((row) => !contract.includes(`\n| ${row} | `))).to.deep.equal([]);
  });

  it('unbroken, the tests that are named pass', async () => {
    const titles = [...new Set(drawn.map(({ grep }) => grep))];
    const tests = [...new Set(drawn.map(({ test }) => test))];
    const { failed, text } = await runTests(tree, tests, titles);
    expect(failed, text.slice(-3000)).to.equal(0);
    const seen = [...text.matchAll(/"fullTitle": (".*")/g)].map(([, json = '""']) => String(JSON.parse(json)));
    const missing = titles.filter((title) => !seen.some((one) => one.includes(title)));
    expect(missing, text.slice(-3000)).to.deep.equal([]);
  });

  for (const { rows: served, file, from, to, test, grep } of drawn) {
    it(`${[...served, file].join(' ')}: ${from}`, async () => {
      const path = join(tree, file);
      const whole = readFileSync(path, 'utf8');
      writeFileSync(
        path,
        whole.replace(from, () => to),
      );
      try {
        const { failed, text } = await runTests(tree, [test], [grep]);
        expect(failed, `no test saw it:\n${text.slice(-3000)}`).to.be.above(0);
      } finally {
        writeFileSync(path, whole);
      }
    });
  }
});

/** As many as wanted, drawn by the seed. */
function draw<T>(from: readonly T[], many: number, nameOf: (one: T) => string): T[] {
  const rankOf = (one: T) => hash('sha256', `${seed} ${nameOf(one)}`);
  return from.toSorted((one, other) => (rankOf(one) < rankOf(other) ? -1 : 1)).slice(0, many);
}

function drawMutants(from: readonly Mutant[], many: number): Mutant[] {
  return draw(from, many, ({ file, from: line, to }) => `${file} ${line} ${to}`);
}

function drawForRow(row: string): Mutant[] {
  return drawMutants(
    all.filter((mutant) => mutant.rows.includes(row)),
    1,
  );
}

/** Runs the tests whose titles hold one of these words. A run that did not happen counts as no failure. */
async function runTests(
  folder: string,
  tests: readonly string[],
  titles: readonly string[],
): Promise<{ failed: number; text: string }> {
  const grep = titles.map((title) => title.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
  const args = ['node_modules/mocha/bin/mocha.js', ...tests, '--grep', grep, '--reporter', 'json', '--exit'];
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk;
  });
  child.stderr.on('data', (chunk: Buffer) => {
    text += chunk;
  });
  await new Promise((resolve) => child.once('close', resolve));
  return { failed: Number(/"failures": (\d+)/.exec(text)?.[1] ?? 0), text };
}
