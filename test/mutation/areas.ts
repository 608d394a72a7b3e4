import { posix } from 'node:path';
import { texts } from '../support/tree-files.ts';
import { listImports } from '../support/typescript-source.ts';

/** A part of src whose mutants are counted together. */
export interface Area {
  readonly name: string;
  readonly files: readonly string[];
  /** Test files that may kill its mutants, in their order; none needs a service. */
  readonly specs: readonly string[];
  /** Processes for each processor: more than one where tests mostly wait. */
  readonly perProcessor: number;
}

const unit = 'test/unit/**/*.test.ts';
/** The quickest ones first. Tests of the egress role, and those with random bytes, run it in other processes, which no mutant reaches. */
const proxy = ['proxy', 'resolver', '!(role|random-bytes)'].map((name) => `test/egress/${name}.test.ts`);
/** A rule has no clock, and no connection. */
const impure = /\b(?:Socket|setTimeout|setImmediate|setInterval|AbortSignal\.timeout|Date\.now|performance\.now)\b/;
const pure = /^src\/(?:base|model)\/|^node:(?:buffer|crypto|net|util|zlib)$/;
/** Tables of texts, which a document shows: a mutant of them is another text. */
const tables = /\/(?:openapi|routes)[\w-]*\.ts$/;

export function listAreas(): Area[] {
  const filesOf = (folder: string) =>
    [...texts.keys()].filter((path) => path.startsWith(folder) && path.endsWith('.ts'));
  return [
    { name: 'model', files: filesOf('src/model/'), specs: [unit], perProcessor: 1 },
    { name: 'egress', files: filesOf('src/egress/'), specs: [unit, ...proxy], perProcessor: 3 },
    {
      name: 'api',
      files: filesOf('src/api/').filter((path) => !tables.test(path) && isPure(path)),
      specs: [unit],
      perProcessor: 1,
    },
  ];
}

/** Returns true for a file without a clock and a connection that loads nothing which needs a service. */
function isPure(path: string): boolean {
  if (impure.test(texts.get(path)!)) return false;
  return [...loadedWith(path)].every((loaded) => posix.dirname(loaded) === posix.dirname(path) || pure.test(loaded));
}

/** Returns the files and packages that a file loads, sooner or later; pure ones are not followed. */
function loadedWith(first: string): Set<string> {
  const found = new Set([first]);
  for (const path of found) {
    if (pure.test(path)) continue;
    const text = texts.get(path)?.replace(/^import type .*?;$/gms, '') ?? '';
    for (const { from } of listImports(text)) {
      found.add(from.startsWith('.') ? posix.join(posix.dirname(path), from) : from);
    }
  }
  return found;
}
