import { globSync, readFileSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { INSTRUMENTER_CONSTANTS, type InstrumenterContext } from '@stryker-mutator/api/core';
import { declareClassPlugin, PluginKind } from '@stryker-mutator/api/plugin';
import {
  type DryRunOptions,
  type DryRunResult,
  DryRunStatus,
  determineHitLimitReached,
  type MutantRunOptions,
  type MutantRunResult,
  type TestResult,
  type TestRunner,
  TestStatus,
  toMutantRunResult,
} from '@stryker-mutator/api/test-runner';
import Mocha from 'mocha';

/** Tests that may kill a mutant; none needs a service, and those of whole roles run in other processes, which no mutant reaches. */
const specs = ['test/unit/**/*.test.ts', 'test/egress/**/!(role).test.ts'];
/** A mutant that hangs fails its test soon. */
const testMs = 3000;

/**
 * Stryker's test runner for mocha 12, whose parts the runner of the registry (10.0.0) does not find any more. Mocha imports each
 * file once, so a mutant of code that runs at import gets a new process.
 */
class MochaRunner implements TestRunner {
  static readonly inject = [] as const;
  readonly #context: InstrumenterContext;
  readonly #mocha = new Mocha({ reporter: 'base', timeout: testMs });
  #files = globSync(specs).sort();
  #isLoaded = false;
  #isRecording = false;

  constructor() {
    const scope = globalThis as unknown as Record<string, InstrumenterContext>;
    scope[INSTRUMENTER_CONSTANTS.NAMESPACE] ??= {};
    this.#context = scope[INSTRUMENTER_CONSTANTS.NAMESPACE]!;
  }

  capabilities() {
    return { reloadEnvironment: false };
  }

  async dryRun({ coverageAnalysis, disableBail }: DryRunOptions): Promise<DryRunResult> {
    this.#isRecording = coverageAnalysis === 'perTest';
    const result = await this.#run(!disableBail);
    this.#isRecording = false;
    if (result.status !== DryRunStatus.Complete || !this.#context.mutantCoverage) return result;
    return { ...result, mutantCoverage: this.#context.mutantCoverage };
  }

  async mutantRun(options: MutantRunOptions): Promise<MutantRunResult> {
    const { testFilter, hitLimit, activeMutant, mutantActivation, disableBail, sandboxFileName } = options;
    Object.assign(this.#context, { hitLimit, hitCount: hitLimit ? 0 : undefined });
    this.#mocha.grep(
      testFilter
        ? new RegExp(testFilter.map((title) => `^${title.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&')}$`).join('|'))
        : /^/,
    );
    if (mutantActivation === 'static') {
      this.#context.activeMutant = activeMutant.id;
      // Its process runs for this mutant alone.
      const mutated = realpathSync(sandboxFileName);
      this.#files = this.#files.filter((spec) => loadedWith(realpathSync(spec)).has(mutated));
      if (this.#files.length === 0) throw new Error(`no test loads ${mutated}`);
    }
    return toMutantRunResult(await this.#run(!disableBail, activeMutant.id));
  }

  async #run(bail: boolean, mutant?: string): Promise<DryRunResult> {
    try {
      await this.#load();
      if (mutant !== undefined) this.#context.activeMutant = mutant;
      setBail(this.#mocha.suite, bail);
      const tests = await this.#runTests();
      const reached = determineHitLimitReached(this.#context.hitCount, this.#context.hitLimit);
      return reached ?? { status: DryRunStatus.Complete, tests };
    } catch (error) {
      return { status: DryRunStatus.Error, errorMessage: String(error) };
    }
  }

  async #load(): Promise<void> {
    if (this.#isLoaded) return;
    for (const file of this.#files) this.#mocha.addFile(file);
    this.#mocha.cleanReferencesAfterRun(false);
    const beginTest = (title: string) => {
      if (this.#isRecording) this.#context.currentTestId = title;
    };
    this.#mocha.suite.beforeEach(function () {
      beginTest(this.currentTest!.fullTitle());
    });
    await this.#mocha.loadFilesAsync();
    this.#isLoaded = true;
  }

  #runTests(): Promise<TestResult[]> {
    const tests: TestResult[] = [];
    let start = performance.now();
    const common = (title: string) => {
      const timeSpentMs = performance.now() - start;
      start = performance.now();
      return { id: title, name: title, timeSpentMs };
    };
    return new Promise((resolve) => {
      const runner = this.#mocha.run(() => resolve(tests));
      runner.on('pass', (test) => {
        tests.push({
          ...common(test.fullTitle()),
          ...(test.file && { fileName: test.file }),
          status: TestStatus.Success,
        });
      });
      runner.on('fail', (test, error) => {
        const title = test.ctx?.currentTest?.fullTitle() ?? test.fullTitle();
        tests.push({ ...common(title), status: TestStatus.Failed, failureMessage: error.message || 'no message' });
      });
    });
  }
}

/** Returns the paths of the files that a file loads, sooner or later. */
function loadedWith(first: string): Set<string> {
  const found = new Set([first]);
  for (const path of found) {
    for (const [, from = ''] of readFileSync(path, 'utf8').matchAll(/ from '(\.[^']+)'/g)) {
      found.add(resolve(path, '..', from));
    }
  }
  return found;
}

function setBail(suite: Mocha.Suite, bail: boolean): void {
  suite.bail(bail);
  for (const inner of suite.suites) setBail(inner, bail);
}

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, 'mocha', MochaRunner)];
