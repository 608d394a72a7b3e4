import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '..', '..');

export function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** Every place where a pattern stands, as `path:line: what was found`. */
export function findPlaces(pattern: RegExp, inTexts: Iterable<readonly [string, string]>): string[] {
  return [...inTexts].flatMap(([path, text]) =>
    [...text.matchAll(pattern)].map((match) => `${path}:${lineOf(text, match.index)}: ${match[0].trim()}`),
  );
}

/** The number of the line that holds a position. */
export function lineOf(text: string, position: number): number {
  return text.slice(0, position).split('\n').length;
}
