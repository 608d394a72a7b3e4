import { posix } from 'node:path';
import { expect } from 'chai';
import { makeDocs } from '../../src/admin/generated-pages.ts';
import { failures, refusals } from '../../src/base/errors.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { settings } from '../../src/base/settings/settings.ts';
import { lineToAsk, lineToGet } from '../../src/roles/sample-account.ts';
import { listBlocks } from '../support/doc-page.ts';
import { expectNames } from '../support/same-names.ts';
import { read } from '../support/tree.ts';
import { files, texts } from '../support/tree-files.ts';

/** The lists in the documents, as the code has them. */
const lists: Record<string, () => readonly string[]> = {
  'errors.md': () => [...Object.keys(refusals), ...Object.keys(failures)],
  'config.md': () => settings.map(({ name }) => name),
  'metrics.md': () =>
    Object.keys(makeMetrics())
      .filter((name) => !['registry', 'refreshers'].includes(name))
      .map((name) => `trawl_${name}`),
};

const pages = [...texts].filter(([path]) => path.endsWith('.md'));
const makefile = read('Makefile');
const targets = [...makefile.matchAll(/^([a-z_0-9-]+):(?! export)/gm)].map(([, name]) => name!);

describe('the documents', () => {
  for (const [name, list] of Object.entries(lists)) {
    it(`D70: docs/${name} lists what the code has, and nothing else`, () => {
      const rows = [...read(`docs/${name}`).matchAll(/^\| `([^`]+)` \|/gm)].map(([, first]) => first!);
      const listed = name === 'metrics.md' ? rows.filter((row) => row.startsWith('trawl_')) : rows;
      expectNames(`docs/${name}, which make verify writes`, listed, list());
      expect(listed).to.have.lengthOf(list().length);
    });
  }

  for (const [name, text] of Object.entries(makeDocs())) {
    it(`docs/${name} is as make verify writes it`, () => {
      expect(read(`docs/${name}`)).to.equal(text);
    });
  }

  it('README.md shows the lines that the first start prints', () => {
    const [url, key] = ['http://127.0.0.1:8080', 'trawl_…'];
    for (const line of [lineToAsk(url, key), lineToGet(url, key)]) expect(read('README.md')).to.contain(`\n${line}\n`);
  });

  it('links lead to files and headings that are there', () => {
    const broken = pages.flatMap(([path, text]) =>
      listLinks(text)
        .filter((link) => !leadsSomewhere(path, link))
        .map((link) => `${path}: ${link}`),
    );
    expect(broken).to.deep.equal([]);
  });

  it('paths in code spans are there', () => {
    const gone = pages.flatMap(([path, text]) =>
      listCode(text, /^(?:src|test|docs|docker|\.ci)\/[\w./-]*$/)
        .filter((named) => !isThere(named))
        .map((named) => `${path}: ${named}`),
    );
    expect(gone).to.deep.equal([]);
  });

  it('files of code that they name without a folder, or from within src, are there', () => {
    const gone = pages.flatMap(([path, text]) =>
      listCode(text, /^[\w./-]+\.(?:ts|py|tpl)$/)
        .filter((named) => !files.some((file) => `/${file}`.endsWith(`/${named}`)))
        .map((named) => `${path}: ${named}`),
    );
    expect(gone).to.deep.equal([]);
  });

  it('ARCHITECTURE.md and docs/changing.md name functions and fields that the code has', () => {
    const code = [...texts].filter(([path]) => /^(?:src|test|charts|\.ci)\//.test(path)).map(([, text]) => text);
    const words = new Set(code.flatMap((text) => text.match(/\w+/g) ?? []));
    const gone = ['ARCHITECTURE.md', 'docs/changing.md'].flatMap((path) =>
      listCode(read(path), /^(?:[a-z]+[A-Z]\w*|\w+\(\))$/).filter((name) => !words.has(name.replace('()', ''))),
    );
    expect(gone).to.deep.equal([]);
  });

  it('every make target they name is there', () => {
    const named = pages.flatMap(([path, text]) =>
      listTargets(text)
        .filter((target) => !targets.includes(target))
        .map((target) => `${path}: make ${target}`),
    );
    expect(named).to.deep.equal([]);
  });

  it('every make target has a sentence', () => {
    const described = [...makefile.matchAll(/^([a-z_0-9-]+):.* ## \S.*$/gm)].map(([, name]) => name!);
    expect(described).to.deep.equal(targets.filter((name) => name !== 'node_modules'));
    expect(/^\.PHONY: (.*)$/m.exec(makefile)?.[1]).to.equal(described.join(' '));
  });

  it('docs/s3.md shows no rule that removes objects: the ledger of closed periods is among them', () => {
    const shown = listBlocks(read('docs/s3.md')).flatMap(({ text }) => (JSON.parse(text).Rules ?? []) as object[]);
    const names = ['AbortIncompleteMultipartUpload', 'Filter', 'ID', 'Status'];
    expect(shown.map((rule) => Object.keys(rule).sort())).to.deep.equal([names]);
  });

  it('each folder of src has a README of at most 15 lines that says what it promises', () => {
    const folders = new Set(files.flatMap((path) => /^src\/([^/]+)\/[^/]+/.exec(path)?.[1] ?? []));
    const isFit = (page = '') => /^- Promises: /m.test(page) && page.split('\n').length <= 16;
    expect([...folders].filter((folder) => !isFit(texts.get(`src/${folder}/README.md`)))).to.deep.equal([]);
  });

  it('ARCHITECTURE.md stays short', () => {
    expect(read('ARCHITECTURE.md').split('\n').length).to.be.at.most(151);
  });
});

function listLinks(text: string): string[] {
  return [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link]) => link!)
    .filter((link) => !/^[a-z]+:/.test(link));
}

function leadsSomewhere(from: string, link: string): boolean {
  const [file, heading] = link.split('#');
  const path = file ? posix.join(posix.dirname(from), file) : from;
  if (!isThere(path)) return false;
  return !heading || listHeadings(read(path)).includes(heading);
}

/** Returns true for a file of the project, or a folder that holds one. */
function isThere(path: string): boolean {
  return files.some((file) => file === path || file.startsWith(`${path.replace(/\/$/, '')}/`));
}

/** Every heading as a link names it. */
function listHeadings(text: string): string[] {
  const headings = [...withoutCode(text).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading!);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  );
}

function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, '');
}

function listCode(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!).filter((code) => pattern.test(code));
}

/** Every target that a code span or a block of code runs with make. */
function listTargets(text: string): string[] {
  const code = [...text.matchAll(/^```[\s\S]*?^```|`[^`\n]*`/gm)].map(([found]) => found);
  return code.flatMap((block) => [...block.matchAll(/\bmake ([a-z][a-z0-9-]*)/g)].map(([, target]) => target!));
}
