import { globSync } from 'node:fs';
import { expect } from 'chai';
import { scripts } from '../../src/store/script.ts';
import { jobMutants } from '../checker/job-mutants.ts';
import { luaMutants } from '../mutation/lua-mutants.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';

/** A Lua function that reads this many locals of the script around it. */
function luaWithUpvalues(count: number): string {
  const names = Array.from({ length: count }, (_, n) => `a${n}`);
  return `local ${names.join(', ')} = 1\nlocal function f() return ${names.join(' or ')} end\nreturn { f() }`;
}

describe('the scripts of the store', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startTestRedis();
    for (const file of globSync('src/store/**/*.ts')) await import(`../../${file}`);
  });
  after(() => redis.stop());

  const load = (lua: string) => redis.connection.send(['SCRIPT', 'LOAD', lua]);

  it('are within the limits of Lua, such as 60 outer locals a function: Redis compiles each', async () => {
    expect(scripts.length).to.be.above(30);
    for (const { name, lua, sha } of scripts) expect(await load(lua), name).to.equal(sha);
  });

  it('would be refused with a function that reads 61 outer locals', async () => {
    await load(luaWithUpvalues(60));
    const error = await load(luaWithUpvalues(61)).catch((caught: Error) => caught);
    expect(String(error)).to.match(/more than 60 upvalues/);
  });

  it('declare no function that they never name again: each call pays for it', () => {
    const unused = scripts.flatMap(({ name, lua }) =>
      [...lua.matchAll(/\bfunction (\w+)\(/g)]
        .filter(([, declared]) => lua.split(new RegExp(`\\b${declared}\\b`)).length === 2)
        .map(([, declared]) => `${declared} in ${name}`),
    );
    expect(unused).to.deep.equal([]);
  });

  it('have the place of each mutant, which only the long form runs', () => {
    const mutants = [...new Set([...luaMutants, ...jobMutants])];
    const lost = mutants.filter(
      ({ within, place }) => !scripts.some(({ lua }) => lua.includes(`'${within}'`) && place.test(lua)),
    );
    expect(lost.map(({ name }) => name)).to.deep.equal([]);
  });

  it('have names of their own', () => {
    expect(new Set(scripts.map(({ name }) => name)).size).to.equal(scripts.length);
  });
});
