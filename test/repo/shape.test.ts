import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect } from 'chai';
import { listFunctions } from '../support/functions.ts';
import { findPlaces, root } from '../support/tree.ts';
import { files, texts } from '../support/tree-files.ts';
import { blank, listDeclared } from '../support/typescript-source.ts';

const top = [
  '.ci .github .gitignore .mocharc.json .npmrc ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md LICENSE Makefile README.md SECURITY.md biome.json',
  'charts clients dashboards docker docs manifests package-lock.json package.json renovate.json src test trawl tsconfig.json',
];
const longest: Record<string, number> = { ts: 300, js: 300, mjs: 300, css: 300, html: 300, sh: 300, py: 250 };
const longestFunction = 60;
/** Words that say nothing; and `Base…`, because what is shared stands in functions. */
const emptyWords = /^(?:manager|helper|util|utilitie|common|misc|data|info|impl)s?$/;
const baseClass = /^(?:Base|Abstract)[A-Z]/;

const code = [...texts].filter(([path]) => /^(?:src|test|dashboards)\/|^(?:docker|\.ci)\/.*\.ts$/.test(path));
const sources = code.filter(([path]) => path.endsWith('.ts'));
const blanked = sources.map(([path, text]) => [path, blank(text)] as const);

describe('the shape of the tree', () => {
  it('the top holds nothing but what belongs there', () => {
    const allowed = top.join(' ').split(' ');
    expect(
      [...new Set(files.map((path) => path.split('/')[0]!))].filter((name) => !allowed.includes(name)),
    ).to.deep.equal([]);
  });

  it('no file is too long', () => {
    const tooLong = code.flatMap(([path, text]) => {
      const lines = text.split('\n').length - 1;
      const most = longest[path.split('.').at(-1)!] ?? Infinity;
      return lines > most ? [`${path}: ${lines} lines, at most ${most}`] : [];
    });
    expect(tooLong).to.deep.equal([]);
  });

  it('no test has a shorter time limit than the usual one, which ends a hang on a busy machine too', () => {
    const usual = Number(JSON.parse(readFileSync(join(root, '.mocharc.json'), 'utf8')).timeout);
    const limits = sources.flatMap(([path, text]) =>
      [...text.matchAll(/(?<!AbortSignal)\.timeout\((?:[^()]*: )?(\d[\d_]*)\b(?! \*)/g)].map(([, digits = '']) => ({
        path,
        ms: Number(digits.replaceAll('_', '')),
      })),
    );
    expect(limits.some(({ ms }) => ms > usual)).to.equal(true);
    expect(limits.filter(({ ms }) => ms > 0 && ms < usual)).to.deep.equal([]);
  });

  it('no function is too long', () => {
    const tooLong = sources.flatMap(([path, text]) => {
      const long = listFunctions(text).filter(({ lines }) => lines > longestFunction);
      return long.map(
        ({ name, line, lines }) => `${path}:${line}: ${name} has ${lines} lines, at most ${longestFunction}`,
      );
    });
    expect(tooLong).to.deep.equal([]);
  });

  it('files are named in lower case, with hyphens', () => {
    const wrong = code
      .map(([path]) => path)
      .filter((path) => !/^(?:README\.md|[a-z0-9-]+(?:\.[a-z0-9-]+)*)$/.test(basename(path)));
    expect(wrong).to.deep.equal([]);
  });

  it('no name is an empty word', () => {
    const named = code.flatMap(([path, text]) =>
      [...basename(path).split('.').slice(0, 1), ...(path.endsWith('.ts') ? listDeclared(text) : [])]
        .filter(isEmptyName)
        .map((name) => `${path}: ${name}`),
    );
    expect(named).to.deep.equal([]);
  });

  it('nothing is exported by default or passed on, and there are no enums', () => {
    const forbidden =
      /\bexport\s+(?:default\b|=|(?:type\s+)?\*|(?:type\s+)?\{[^}]*\}\s*from\b)|\b(?:const\s+)?enum\s+\w+\s*\{/g;
    expect(findPlaces(forbidden, blanked)).to.deep.equal([]);
  });

  it('no test is left out', () => {
    expect(findPlaces(/\.(?:only|skip)\(|\bx(?:it|describe)\(/g, blanked)).to.deep.equal([]);
  });

  it('no error is ignored without a reason', () => {
    const silent = sources.flatMap(([path, text]) => listSilent(text).map((line) => `${path}: ${line}`));
    expect(silent).to.deep.equal([]);
  });
});

/** Every catch that does nothing and has no comment, neither inside nor on the line before. */
function listSilent(text: string): string[] {
  const silent = /\bcatch\s*(?:\([^)]*\)\s*)?\{\s*\}|\.catch\(\s*\([^)]*\)\s*=>\s*\{\s*\}\s*\)/g;
  return [...blank(text).matchAll(silent)].flatMap(({ 0: found, index }) => {
    const before = text.slice(0, index).split('\n').at(-2) ?? '';
    const reason = /\/[/*]/.test(before.trimStart().slice(0, 2) + text.slice(index, index + found.length));
    return reason ? [] : [text.slice(index, index + found.length)];
  });
}

function isEmptyName(name: string): boolean {
  const words = name.split(/[^A-Za-z]+|(?<=[a-z])(?=[A-Z])/).map((word) => word.toLowerCase());
  return words.some((word) => emptyWords.test(word)) || baseClass.test(name);
}
