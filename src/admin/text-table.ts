import { printable } from '../base/terminal.ts';

/** Value of a table cell; `null` is shown as a dash. */
export type Cell = string | number | boolean | null;

/** Returns rows as an aligned table with the names of their fields as heads, or the sentence when there are none. */
export function tableText(rows: readonly Readonly<Record<string, Cell>>[], none: string): string {
  const [first] = rows;
  if (!first) return `${none}\n`;
  const heads = Object.keys(first);
  const isNumber = heads.map((head) => rows.every((row) => ['number', 'object'].includes(typeof row[head])));
  const lines = [heads, ...rows.map((row) => Object.values(row).map(cellText))];
  const widths = isNumber.map((_, n) => Math.max(...lines.map((line) => widthOf(line[n] ?? ''))));
  return lines.map((line) => lineOf(line.map((cell, n) => pad(cell, widths[n] ?? 0, isNumber[n] ?? false)))).join('');
}

/** Returns the result of a command that lists: every item as JSON, and as a row of a table. */
export function listResult<T>(
  items: readonly T[],
  shapeOf: (item: T) => object,
  rowOf: (item: T) => Readonly<Record<string, Cell>>,
  none: string,
): { readonly value: readonly object[]; readonly text: string } {
  return { value: items.map(shapeOf), text: tableText(items.map(rowOf), none) };
}

/** Returns one line per field, each value after its name. */
export function fieldText(fields: Readonly<Record<string, Cell>>): string {
  const width = Math.max(...Object.keys(fields).map(widthOf));
  return Object.entries(fields)
    .map(([name, value]) => lineOf([pad(name, width, false), cellText(value)]))
    .join('');
}

/** Returns a time as `YYYY-MM-DD HH:MM:SS` in UTC. */
export function timeText<T extends number | null>(milliseconds: T): T extends number ? string : null;
export function timeText(milliseconds: number | null): string | null {
  return milliseconds === null ? null : new Date(milliseconds).toISOString().slice(0, 19).replace('T', ' ');
}

function cellText(cell: Cell): string {
  if (cell === null || cell === '') return '-';
  if (typeof cell === 'boolean') return cell ? 'yes' : 'no';
  if (typeof cell === 'number') return cell.toLocaleString('en-US');
  return printable(cell);
}

function pad(text: string, width: number, toTheRight: boolean): string {
  const blanks = ' '.repeat(Math.max(0, width - widthOf(text)));
  return toTheRight ? blanks + text : text + blanks;
}

function widthOf(text: string): number {
  return [...text].length;
}

function lineOf(cells: readonly string[]): string {
  return `${cells.join('  ').trimEnd()}\n`;
}
