import { expect } from 'chai';
import { listProcedures } from '../support/procedures.ts';
import { texts } from '../support/tree.ts';

const procedures = [...listProcedures()];
const tests = [...texts].filter(([path]) => /^test\/operate\/.*\.test\.ts$/.test(path));
const ran = tests.flatMap(([, text]) => [...text.matchAll(/\brunProcedure\(\s*'([^']+)'/g)].map(([, title]) => title!));

describe('the procedures of docs/operate.md', () => {
  it('are run by tests, each of them', () => {
    expect([...new Set(ran)].sort()).to.deep.equal(procedures.map(([title]) => title).sort());
  });

  it('have a script each, and a title of their own', () => {
    expect(procedures.filter(([, script]) => script.trim() === '')).to.deep.equal([]);
    expect(new Set(procedures.map(([title]) => title)).size).to.equal(procedures.length);
  });
});
