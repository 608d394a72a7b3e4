import { posix } from 'node:path';
import { expect } from 'chai';
import { texts } from '../support/tree-files.ts';

const kebab = (letter: string) => `-${letter.toLowerCase()}`;
const sources = [...texts].filter(([path]) => /^src\/.*\.ts$/.test(path));

describe('names', () => {
  it('a type name is declared in one file of src', () => {
    const found = sources.flatMap(([path, text]) =>
      [...text.matchAll(/^(?:export )?(?:interface|type|class) (\w+)/gm)].map(([, name]) => [name!, path] as const),
    );
    expect(listShared(found)).to.deep.equal([]);
  });

  it('a file name stands once in src', () => {
    const found = sources.map(([path]) => [posix.basename(path), path] as const);
    expect(listShared(found)).to.deep.equal([]);
  });

  it('a script of the store bears the name of its file or of a function of it', () => {
    const found = sources.flatMap(([path, text]) => {
      const functions = [...text.matchAll(/\b(?:function|export const) (\w+)/g)].map(([, name]) =>
        name!.replace(/[A-Z]/g, kebab),
      );
      const allowed = [posix.basename(path, '.ts'), ...functions];
      return [...text.matchAll(/= (?:script|notedScript)\(\s*'([^']+)'/g)].flatMap(([, name]) =>
        allowed.includes(name!) ? [] : [`${path}: ${name}`],
      );
    });
    expect(found).to.deep.equal([]);
  });

  it('a doc comment begins with its subject', () => {
    const opening = /\/\*\*\s*(?:\*\s*)?(?:What|Who|Whoever|Whether|Why|How|That|It|Nobody|There)\b[^\n*]{0,70}/g;
    const scripts = [...texts].filter(([path]) => /^src\/.*\.[jt]s$/.test(path));
    const found = scripts.flatMap(([path, text]) => [...text.matchAll(opening)].map(([words]) => `${path}: ${words}`));
    expect(found).to.deep.equal([]);
  });

  it('the title of a test begins with its subject or its result', () => {
    const opening = /\bit\(\s*['"`](?:that|when|in|and|it) [^\n]{0,60}/g;
    const tests = [...texts].filter(([path]) => /^test\/.*\.(?:test|suite|contract)\.ts$/.test(path));
    const found = tests.flatMap(([path, text]) => [...text.matchAll(opening)].map(([words]) => `${path}: ${words}`));
    expect(found).to.deep.equal([]);
  });
});

/** Names that stand in more than one file, with these files. */
function listShared(found: readonly (readonly [name: string, path: string])[]): string[] {
  const files = new Map<string, Set<string>>();
  for (const [name, path] of found) files.set(name, (files.get(name) ?? new Set()).add(path));
  return [...files].filter(([, paths]) => paths.size > 1).map(([name, paths]) => `${name}: ${[...paths].join(', ')}`);
}
