import { boards } from '../boards.ts';
import { themes, widths } from './picture.ts';

/** The pictures of one state of the system: file by dashboard, theme and width; `drill` is null for a healthy system. */
export interface DrawnState {
  readonly drill: string | null;
  readonly files: ReadonlyMap<string, string>;
}

/** Returns the beginning of the file names of a state. */
export function nameOf(drill: string | null): string {
  return drill === null ? 'healthy' : drill.toLowerCase().replaceAll(/\W+/g, '-').replace(/-$/, '');
}

/** Writes the page that leads to each picture. */
export function writeIndex(states: readonly DrawnState[]): string {
  const cells = (parts: readonly string[]) => `| ${parts.join(' | ')} |`;
  const rows = states.map(({ drill, files }) => {
    return cells([drill ?? 'A healthy system', ...boards.map(({ name }) => cellOf(drill, name, files))]);
  });
  return `${[
    '# Pictures of the dashboards',
    '',
    '`make pictures` draws all of them into this folder, and this page: healthy and in each [drill](../../drills.md), dark and light,',
    '1,400 and 900 pixels wide. The fault begins 45 minutes before the end. A dashboard that a fault does not change is kept once.',
    '',
    cells(['State', ...boards.map(({ title }) => title)]),
    cells(['State', ...boards].map(() => '---')),
    ...rows,
  ].join('\n')}\n`;
}

function cellOf(drill: string | null, board: string, files: DrawnState['files']): string {
  const linksOf = (theme: string) =>
    widths.map((width) => `[${width}](${files.get(`${board}-${theme}-${width}`)})`).join(' ');
  const isHealthy = [...files].every(([key, file]) => !key.startsWith(`${board}-`) || file.startsWith('healthy-'));
  const links = themes.map((theme) => `${theme} ${linksOf(theme)}`).join(', ');
  return drill !== null && isHealthy ? `as healthy: ${links}` : links;
}
