import { expect } from 'chai';
import { listProcedures } from '../support/procedures.ts';
import { texts } from '../support/tree.ts';

const procedures = [...listProcedures()];
const tests = [...texts].filter(([path]) => /^test\/operate\/.*\.test\.ts$/.test(path));
const words = tests.map(([, text]) => text).join('\n');

describe('the procedures of docs/operate.md', () => {
  it('are run by tests, each of them', () => {
    // A title that is not in the document fails there: `runProcedure` knows no other.
    expect(procedures.map(([title]) => title).filter((title) => !words.includes(`'${title}'`))).to.deep.equal([]);
  });

  it('have a script each, and a title of their own', () => {
    expect(procedures.filter(([, script]) => script.trim() === '')).to.deep.equal([]);
    expect(new Set(procedures.map(([title]) => title)).size).to.equal(procedures.length);
  });
});
