import { globSync, readFileSync, realpathSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { INSTRUMENTER_CONSTANTS, type InstrumenterContext, type StrykerOptions } from '@stryker-mutator/api/core';
import { commonTokens, declareClassPlugin, PluginKind, tokens } from '@stryker-mutator/api/plugin';
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

/** Limits of one test, which end a hang: without a mutant, where no test may fail for being slow, and with one. */
const testMs = 60_000;
const mutantTestMs = 15_000;

/** Each load of the tests is a version: files of the project are imported anew in each, packages are not. */
let version = 0;
registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    const isOwn = found.url.startsWith('file:') && !found.url.includes('/node_modules/');
    return isOwn && version > 0 ? { ...found, url: `${found.url}?version=${version}` } : found;
  },
});

/**
 * Stryker's test runner for mocha 12, whose parts the runner of the registry (10.0.0) does not find any more. A mutant of code
 * that runs at import is met by a fresh import of the tests that load its file, in the same process.
 */
class MochaRunner implements TestRunner {
  static readonly inject = tokens(commonTokens.options);
  readonly #context: InstrumenterContext;
  readonly #specs: readonly string[];
  #mocha: Mocha | undefined;
  #isRecording = false;

  constructor({ mutate, mochaOptions }: StrykerOptions) {
    const { spec } = mochaOptions as { spec: string[] };
    this.#specs = specsOf(
      spec.flatMap((pattern) => globSync(pattern).sort()),
      mutate,
    );
    const scope = globalThis as unknown as Record<string, InstrumenterContext>;
    scope[INSTRUMENTER_CONSTANTS.NAMESPACE] ??= {};
    this.#context = scope[INSTRUMENTER_CONSTANTS.NAMESPACE]!;
  }

  capabilities() {
    return { reloadEnvironment: true };
  }

  async dryRun({ coverageAnalysis, disableBail }: DryRunOptions): Promise<DryRunResult> {
    this.#isRecording = coverageAnalysis === 'perTest';
    const result = await this.#run(async () => {
      this.#mocha = await this.#load(this.#specs);
      return runTests(this.#mocha, /^/, !disableBail, testMs);
    });
    this.#isRecording = false;
    if (result.status !== DryRunStatus.Complete || !this.#context.mutantCoverage) return result;
    return { ...result, mutantCoverage: this.#context.mutantCoverage };
  }

  async mutantRun(options: MutantRunOptions): Promise<MutantRunResult> {
    const { testFilter, hitLimit, activeMutant, mutantActivation, disableBail, sandboxFileName } = options;
    Object.assign(this.#context, { hitLimit, hitCount: hitLimit ? 0 : undefined, activeMutant: undefined });
    const result = await this.#run(async () => {
      if (mutantActivation === 'static') {
        this.#context.activeMutant = activeMutant.id;
        this.#mocha = await this.#load(specsOf(this.#specs, [sandboxFileName]));
      } else if (!this.#mocha || options.reloadEnvironment) {
        this.#mocha = await this.#load(this.#specs);
      }
      this.#context.activeMutant = activeMutant.id;
      return runTests(this.#mocha, testFilter ? anyOf(testFilter) : /^/, !disableBail, mutantTestMs);
    });
    return toMutantRunResult(result);
  }

  async #run(runAll: () => Promise<TestResult[] | 'timeout'>): Promise<DryRunResult> {
    try {
      const tests = await runAll();
      if (tests === 'timeout') return { status: DryRunStatus.Timeout };
      const reached = determineHitLimitReached(this.#context.hitCount, this.#context.hitLimit);
      return reached ?? { status: DryRunStatus.Complete, tests };
    } catch (error) {
      return { status: DryRunStatus.Error, errorMessage: String(error) };
    }
  }

  async #load(files: readonly string[]): Promise<Mocha> {
    if (files.length === 0) throw new Error('no test loads the mutated file');
    version++;
    const mocha = new Mocha({ reporter: 'base', timeout: testMs });
    mocha.cleanReferencesAfterRun(false);
    const beginTest = (title: string) => {
      if (this.#isRecording) this.#context.currentTestId = title;
    };
    mocha.suite.beforeEach(function () {
      beginTest(this.currentTest!.fullTitle());
    });
    for (const file of files) {
      mocha.suite.emit('pre-require', globalThis, file, mocha);
      await import(pathToFileURL(file).href);
    }
    return mocha;
  }
}

function anyOf(titles: readonly string[]): RegExp {
  return new RegExp(titles.map((title) => `^${title.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&')}$`).join('|'));
}

/** Runs the tests whose title matches, with `bail` up to the first that fails. */
function runTests(mocha: Mocha, titles: RegExp, bail: boolean, limitMs: number): Promise<TestResult[] | 'timeout'> {
  const tests: TestResult[] = [];
  let isTimeout = false;
  let start = performance.now();
  const common = (title: string) => {
    const timeSpentMs = performance.now() - start;
    start = performance.now();
    return { id: title, name: title, timeSpentMs };
  };
  mocha.grep(titles);
  prepare(mocha.suite, bail, limitMs);
  return new Promise((resolve) => {
    const runner = mocha.run(() => resolve(isTimeout ? 'timeout' : tests));
    runner.on('pass', (test) => {
      tests.push({
        ...common(test.fullTitle()),
        ...(test.file && { fileName: test.file }),
        status: TestStatus.Success,
      });
    });
    runner.on('fail', (test, error) => {
      if (error.code === 'ERR_MOCHA_TIMEOUT') {
        isTimeout = true;
        // It may still end while another mutant is tried, which Mocha throws.
        test.removeAllListeners('error').on('error', () => undefined);
      }
      const title = test.ctx?.currentTest?.fullTitle() ?? test.fullTitle();
      tests.push({ ...common(title), status: TestStatus.Failed, failureMessage: error.message || 'no message' });
    });
  });
}

/** Returns the test files that load one of the mutated files. */
function specsOf(specs: readonly string[], mutated: readonly string[]): string[] {
  const paths = mutated.map((path) => realpathSync(path));
  return specs.filter((spec) => {
    const loaded = loadedWith(realpathSync(spec));
    return paths.some((path) => loaded.has(path));
  });
}

/** Returns the paths of the files that a file loads, sooner or later. */
function loadedWith(first: string): Set<string> {
  const found = new Set([first]);
  for (const path of found) {
    for (const imported of importsOf(path)) found.add(imported);
  }
  return found;
}

const imports = new Map<string, readonly string[]>();

function importsOf(path: string): readonly string[] {
  const known = imports.get(path);
  if (known) return known;
  const names = readFileSync(path, 'utf8').matchAll(/ from ['"](\.[^'"]+)['"]/g);
  const found = [...names].map(([, from = '']) => resolve(path, '..', from));
  imports.set(path, found);
  return found;
}

function prepare(suite: Mocha.Suite, bail: boolean, limitMs: number): void {
  suite.bail(bail);
  for (const test of suite.tests) {
    test.timeout(limitMs);
    // Mocha begins to time a test again that has run before.
    test.clearTimeout();
  }
  for (const inner of suite.suites) prepare(inner, bail, limitMs);
}

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, 'mocha', MochaRunner)];
