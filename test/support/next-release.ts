import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { layouts } from '../../src/store/schema.ts';
import { root } from './tree.ts';

/** The release that the test makes, and its layout. */
export const next = { release: '99.0.0', layout: layouts.own + 1 } as const;

/** Changes of the tree: file, what stands there once, and what stands there in the next release. */
const changes: readonly (readonly [file: string, from: string | RegExp, to: string])[] = [
  ['package.json', `"version": "${layouts.release}"`, `"version": "${next.release}"`],
  [
    'src/store/schema.ts',
    `own: ${layouts.own}, oldest: ${layouts.oldest} }`,
    `own: ${next.layout}, oldest: ${layouts.own} }`,
  ],
  // Texts of ended jobs are plain in the next layout, behind a byte with which no deflated text begins.
  ['src/store/jobs/settle-job.ts', /(?<=packTexts\(\{[^}]*\})(?=\))/, ', store.release?.layout()'],
  [
    'src/store/jobs/ended-job.ts',
    'packTexts(texts: JobTexts): Buffer {',
    'packTexts(texts: JobTexts, layout = 0): Buffer {',
  ],
  [
    'src/store/jobs/ended-job.ts',
    '  return deflate(',
    `  if (layout >= ${next.layout}) return Buffer.concat([Buffer.of(7), Buffer.from(JSON.stringify(list))]);
  return deflate(`,
  ],
  [
    'src/store/jobs/ended-job.ts',
    'JSON.parse(inflateRawSync(packed, {',
    'JSON.parse(packed[0] === 7 ? Buffer.from(packed.subarray(1)).toString() : inflateRawSync(packed, {',
  ],
];

/** Makes the tree of a next release with another layout in a folder. */
export function makeNextRelease(folder: string): string {
  mkdirSync(folder, { recursive: true });
  for (const name of ['src', 'trawl', 'package.json'])
    cpSync(join(root, name), join(folder, name), { recursive: true });
  for (const name of ['node_modules', '.cache']) symlinkSync(join(root, name), join(folder, name));
  for (const [file, from, to] of changes) {
    const path = join(folder, file);
    const parts = readFileSync(path, 'utf8').split(from);
    if (parts.length !== 2) throw new Error(`${file} holds ${parts.length - 1} times: ${from}`);
    writeFileSync(path, parts.join(to));
  }
  return folder;
}
