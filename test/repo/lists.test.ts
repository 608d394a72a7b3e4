import { posix } from 'node:path';
import { expect } from 'chai';
import { refusals } from '../../src/base/errors.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { settings } from '../../src/base/settings/settings.ts';
import { views } from '../../src/dashboard/dashboard-views.ts';
import { read } from '../support/tree.ts';
import { texts } from '../support/tree-files.ts';
import { blank, listImports } from '../support/typescript-source.ts';

const everything = [...texts].filter(([path]) => path.endsWith('.ts'));
const sources = everything.filter(([path]) => /^(?:src|docker)\//.test(path));
const importsOf = new Map(
  everything.map(([path, text]) => {
    const local = listImports(text).filter(({ from }) => from.startsWith('.'));
    return [path, new Set(local.map(({ from }) => posix.join(posix.dirname(path), from)))];
  }),
);
/** Exports without an importer in src or docker: tests load, break and count every script, and no other list has them all. */
const forTests = ['src/store/script.ts: scripts'];
const outsideBase = sources.filter(([path]) => !path.startsWith('src/base/')).map(([, text]) => text);

describe('the lists of the tree', () => {
  it('serve every view that the pages of the dashboard link to, and no other', () => {
    const linked = [...read('src/dashboard/pages/app.js').matchAll(/^ {2}\['(\/\w*)', '/gm)].map(([, path]) => path!);
    expect(views.filter((view) => view !== '/sign-in' && !view.includes(':'))).to.deep.equal(linked);
  });

  it('set every declared metric outside base', () => {
    const declared = Object.keys(makeMetrics()).filter((name) => !['registry', 'refreshers'].includes(name));
    const unset = declared.filter((name) => !isNamed(name, outsideBase));
    expect(unset.sort()).to.deep.equal([]);
  });

  it('read every setting outside base', () => {
    const unread = settings.map(({ name }) => name).filter((name) => !isNamed(fieldOf(name), outsideBase));
    expect(unread.sort()).to.deep.equal([]);
  });

  it('answer with every refusal somewhere', () => {
    const answering = sources.filter(([path]) => path !== 'src/base/errors.ts');
    const words = answering.map(([, text]) => text).join('\n');
    const silent = Object.keys(refusals).filter((code) => !new RegExp(`['"\`{ ]${code}['"\`}]`).test(words));
    expect(silent.sort()).to.deep.equal([]);
  });

  it('install every package that ARCHITECTURE.md gives to a folder', () => {
    const rows = [...read('ARCHITECTURE.md').matchAll(/^\| `[^`]+` \|[^|\n]*\|[^|\n]*\|([^|\n]*)\|$/gm)];
    const owned = rows.flatMap(([, owns]) => [...owns!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!));
    const installed = Object.keys(JSON.parse(read('package.json')).dependencies);
    const isThere = (name: string) => installed.some((one) => posix.matchesGlob(one, name));
    expect(owned.filter((name) => !isThere(name)).sort()).to.deep.equal([]);
  });

  it('import every exported function, constant and class of src in src or docker, but for those named here', () => {
    const unused = sources.flatMap(([path, text]) => listUnused(path, text));
    expect(unused).to.deep.equal(forTests);
  });

  it('export nothing that no other file imports', () => {
    const exported = /^export (?:async )?(?:function\*?|const|class|interface|type) (\w+)/gm;
    const kept = sources.flatMap(([path, text]) => {
      const names = [...text.matchAll(exported)].map(([, name]) => name!);
      const users = everything.filter(([other]) => importsOf.get(other)?.has(path)).map(([, code]) => code);
      return names.filter((name) => !isNamed(name, users)).map((name) => `${path}: ${name}`);
    });
    expect(kept).to.deep.equal([]);
  });

  it('measure every optimisation with and without it, and begin its file with its gain', () => {
    const begun = [...texts].filter(
      ([path, text]) => path.startsWith('src/') && /^(?:\/\/|\/\*\*|#) Gain: /.test(text),
    );
    const untold = begun
      .filter(([, text]) => !/^(?:\/\/|#) Gain: .*\d.*`make bench BENCH=\w+`/.test(text))
      .map(([path]) => path);
    expect(untold, 'a figure and the bench that has it').to.deep.equal([]);
    const benches = [...texts].filter(([path]) => path.startsWith('test/bench/')).map(([, text]) => text);
    const measured = benches.flatMap((text) =>
      [...text.matchAll(/\boptimisation: '([^']+)'/g)].map(([, path]) => path),
    );
    expect(measured.sort()).to.deep.equal(begun.map(([path]) => path).sort());
  });
});

function isNamed(name: string, inTexts: readonly string[]): boolean {
  const word = new RegExp(`\\b${name}\\b`);
  return inTexts.some((text) => word.test(text));
}

/** TRAWL_S3_PUBLIC_ENDPOINT is `s3PublicEndpoint`. */
function fieldOf(name: string): string {
  const words = name.slice('TRAWL_'.length).toLowerCase();
  return words.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** Exported functions, constants and classes that no importer in src or docker names in its code. */
function listUnused(path: string, text: string): string[] {
  const names = [...text.matchAll(/^export (?:async )?(?:function\*?|const|class) (\w+)/gm)].map(([, name]) => name!);
  if (names.length === 0) return [];
  const users = sources.filter(([other]) => importsOf.get(other)?.has(path)).map(([, code]) => blank(code));
  return names.filter((name) => !isNamed(name, users)).map((name) => `${path}: ${name}`);
}
