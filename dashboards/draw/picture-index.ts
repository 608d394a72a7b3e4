import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { boards } from '../boards.ts';
import { type Picture, themes, widths } from './picture.ts';

export type Look = Pick<Picture, 'theme' | 'width'>;

/** Each theme and width in which a dashboard is drawn. */
export const looks: readonly Look[] = themes.flatMap((theme) => widths.map((width) => ({ theme, width })));

/** Returns the beginning of the file names of a state; `null` is a healthy system. */
export function nameOf(drill: string | null): string {
  return drill === null ? 'healthy' : drill.toLowerCase().replaceAll(/\W+/g, '-').replace(/-$/, '');
}

export function fileOf(drill: string | null, { board, theme, width }: Omit<Picture, 'file'>): string {
  return `${nameOf(drill)}-${board}-${theme}-${width}.webp`;
}

/** Writes the page that leads to each picture that a folder has, and removes those that are there under an earlier name. */
export function writeIndex(folder: string, states: readonly (string | null)[]): void {
  const first = new Map<string, string>();
  const keepOnce = (file: string) => {
    const hash = createHash('sha256')
      .update(readFileSync(join(folder, file)))
      .digest('hex');
    const kept = first.get(hash);
    if (kept === undefined) first.set(hash, file);
    else rmSync(join(folder, file));
    return kept ?? file;
  };
  const rowOf = (parts: readonly string[]) => `| ${parts.join(' | ')} |`;
  const rows = states.map((drill) => {
    const cells = boards.map(({ name }) => {
      const there = looks.filter((look) => existsSync(join(folder, fileOf(drill, { board: name, ...look }))));
      return cellOf(
        drill,
        there.map((look) => [look, keepOnce(fileOf(drill, { board: name, ...look }))]),
      );
    });
    return rowOf([drill ?? 'A healthy system', ...cells]);
  });
  const lines = [
    '# Pictures of the dashboards',
    '',
    '`make pictures` draws every dashboard into this folder, and writes this page: healthy and in each [drill](../../drills.md#pictures), dark',
    'and light, 1,400 and 900 pixels wide. A dashboard that a fault does not change is kept once.',
    '',
    rowOf(['State', ...boards.map(({ title }) => title)]),
    rowOf(['State', ...boards].map(() => '---')),
    ...rows,
  ];
  writeFileSync(join(folder, 'README.md'), `${lines.join('\n')}\n`);
}

/** Returns the links to the pictures of one dashboard in one state. */
function cellOf(drill: string | null, files: readonly (readonly [Look, string])[]): string {
  const links = files.map(([{ theme, width }, file]) => `[${theme} ${width}](${file})`).join(', ');
  const isHealthy = files.every(([, file]) => file.startsWith(`${nameOf(null)}-`));
  return drill !== null && isHealthy ? `as healthy: ${links}` : links;
}
