import { expect } from 'chai';
import { listBlocks } from '../support/doc-page.ts';
import { listPreparations, listProcedures, readPreparation } from '../support/procedures.ts';
import { read } from '../support/tree.ts';
import { texts } from '../support/tree-files.ts';

const page = read('docs/operate.md');
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

  it('are all of its blocks, but for those that make their first words, which tests run too', () => {
    const readers = [...texts].filter(([path]) => /^test\/(operate|e2e|chart)\//.test(path)).map(([, text]) => text);
    const calls = readers.flatMap((text) => [...text.matchAll(/readPreparation\('([^']+)'(?:, '([^']+)')?\)/g)]);
    const run = calls.map(([, heading = '', word]) => readPreparation(heading, word));
    expect(listPreparations().filter(({ text }) => !run.includes(text))).to.deep.equal([]);
    const others = listBlocks(page).filter(({ language }) => !['sh', 'bash'].includes(language));
    // The rights of Redis are compared with what is sent, and the formula is a procedure, too.
    expect(others.map(({ language }) => language)).to.deep.equal(['acl', 'text']);
    const fences = page.split('\n').filter((line) => line.trimStart().startsWith('```'));
    expect(fences, 'a fence that is not at the beginning of a line, or names no language').to.have.length(
      2 * listBlocks(page).length,
    );
    const outside = listBlocks(page).filter(
      ({ heading, language }) => language === 'sh' && !heading.startsWith('Procedure: '),
    );
    expect(outside).to.deep.equal([]);
  });
});
