import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { expect } from 'chai';
import { root } from '../support/tree.ts';
import { luaMutants } from './lua-mutants.ts';

const names = ['', ...luaMutants.map(({ name }) => name)];

describe('mutants of the Lua of the record', function () {
  this.timeout(0);
  const said = new Map<string, string>();

  before(async () => {
    const left = [...names];
    const lane = async () => {
      for (let name = left.shift(); name !== undefined; name = left.shift()) said.set(name, await runSuites(name));
    };
    await Promise.all(Array.from({ length: availableParallelism() }, lane));
  });

  it('are at most 40, each with a name of its own', () => {
    expect(names.length - 1).to.be.at.most(40);
    expect(new Set(names).size).to.equal(names.length);
  });

  it('without a mutant all tests pass', () => {
    expect(said.get(''))
      .to.match(/\d+ passing/)
      .and.not.match(/\d+ failing/);
  });

  for (const name of names.slice(1)) {
    it(`a test fails when ${name.replace(': ', ' ')}`, () => {
      expect(said.get(name), 'its place was found and Redis ran it').to.match(/mutated [1-9]\d* times/);
      expect(said.get(name)).to.match(/1 failing/);
    });
  }
});

/** Runs the suites of the record up to the first test that fails; returns what they print. */
function runSuites(mutant: string): Promise<string> {
  const args = ['node_modules/mocha/bin/mocha.js', 'test/store/record.test.ts', '--grep', 'one redis', '--bail'];
  const env = { ...process.env, LUA_MUTANT: mutant, ROUNDS: undefined };
  return new Promise((resolve) => {
    execFile(process.execPath, [...args, '--reporter', 'dot'], { cwd: root, env }, (_, stdout, stderr) => {
      resolve(stdout + stderr);
    });
  });
}
