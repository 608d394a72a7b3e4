import { posix } from 'node:path';
import { listImports } from '../support/source.ts';
import { texts } from '../support/tree.ts';

/** Folders of src that are mutated whole, and those of which only pure files are: they load nothing that needs a service. */
const whole = /^src\/(?:model|egress)\/.*\.ts$/;
const inPart = /^src\/api\/.*\.ts$/;
const pure = /^src\/(?:base|model)\/|^node:(?:buffer|crypto|net|util|zlib)$/;
/** Tables of texts, which a document shows: a mutant of them is another text. */
const tables = /\/(?:openapi|routes)[\w-]*\.ts$/;

/** Returns the files of src that are mutated. */
export function listMutated(): string[] {
  return [...texts.keys()].filter(
    (path) => whole.test(path) || (inPart.test(path) && !tables.test(path) && isPure(path)),
  );
}

function isPure(path: string): boolean {
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
