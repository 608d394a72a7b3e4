import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { root } from '../support/tree.ts';
import type { Mutant } from './mutant.ts';
import { recordMutants } from './record.ts';

const all: readonly Mutant[] = [...recordMutants];
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
const wanted = process.env.ROUNDS === undefined ? 12 : all.length;

describe(`broken on purpose (${wanted} of ${all.length} lines, SEED=${seed})`, function () {
  this.timeout(120_000);
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

  const drawn = draw(all, wanted);
  it('unbroken, the tests that are named pass', async () => {
    for (const [test, mutants] of Map.groupBy(drawn, (mutant) => mutant.test)) {
      const titles = [...new Set(mutants.map(({ grep }) => grep))];
      const { passed, failed, text } = await runTests(tree, test, titles);
      expect(failed, text).to.equal(0);
      expect(passed, `${test} has fewer tests than titles`).to.be.at.least(titles.length);
    }
  });

  for (const { file, from, to, test, grep } of drawn) {
    it(`${file}: ${from}`, async () => {
      const path = join(tree, file);
      const whole = readFileSync(path, 'utf8');
      writeFileSync(
        path,
        whole.replace(from, () => to),
      );
      try {
        const { failed, text } = await runTests(tree, test, [grep]);
        expect(failed, `no test saw it:\n${text}`).to.be.above(0);
      } finally {
        writeFileSync(path, whole);
      }
    });
  }
});

/** As many as wanted, drawn by the seed. */
function draw(from: readonly Mutant[], many: number): Mutant[] {
  const left = [...from];
  const drawn: Mutant[] = [];
  let state = seed;
  while (drawn.length < many && left.length > 0) {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    drawn.push(...left.splice(state % left.length, 1));
  }
  return drawn;
}

/** Runs the tests whose titles hold one of these words. A run that did not happen counts as no failure. */
async function runTests(
  folder: string,
  test: string,
  titles: readonly string[],
): Promise<{ passed: number; failed: number; text: string }> {
  const grep = titles.map((title) => title.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
  const args = ['node_modules/mocha/bin/mocha.js', test, '--grep', grep, '--reporter', 'json', '--exit'];
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk;
  });
  child.stderr.on('data', (chunk: Buffer) => {
    text += chunk;
  });
  await new Promise((resolve) => child.once('close', resolve));
  const count = (word: string) => Number(new RegExp(`"${word}": (\\d+)`).exec(text)?.[1] ?? 0);
  return { passed: count('passes'), failed: count('failures'), text: text.slice(-3000) };
}
