/** The names that lead to one field, from the outside in. */
export type Path = readonly string[];

interface Wanted {
  /** Everything below is kept. */
  whole: boolean;
  readonly inside: Map<string, Wanted>;
}

export const maxFieldsLength = 2048;
export const fieldsAllowed = `must be at most ${maxFieldsLength} characters, names with commas between them, without control characters`;
/** Pattern of the texts that `parseFields` reads: white space of any kind may stand around commas. */
export const fieldsPattern = '^[^\\u0000-\\u0008\\u000e-\\u001f\\u007f-\\u009f]*$';

const fitting = new RegExp(fieldsPattern);
const neverKept = new Set(['__proto__', 'constructor', 'prototype']);

/** Reads the parameter `fields`: paths between commas, levels between dots. A text that names nothing gives no paths. */
export function parseFields(text: string) {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const paths = names.map((name) => name.split('.'));
  const isShort = text.length <= 2 * maxFieldsLength && [...text].length <= maxFieldsLength;
  const fits = isShort && fitting.test(text) && text.isWellFormed();
  return fits ? ({ ok: true, value: paths } as const) : ({ ok: false, sentence: fieldsAllowed } as const);
}

/** Arrays are crossed; a parent stays, if need be empty or null; a path that goes on below a plain value names nothing. */
export function filterFields(
  body: Readonly<Record<string, unknown>>,
  paths: readonly Path[],
): Readonly<Record<string, unknown>> {
  return paths.length === 0 ? body : filterObject(body, gather(paths));
}

function gather(paths: readonly Path[]): Wanted {
  const root: Wanted = { whole: false, inside: new Map() };
  for (const path of paths) {
    let at = root;
    for (const name of path) {
      const next = at.inside.get(name) ?? { whole: false, inside: new Map() };
      at.inside.set(name, next);
      at = next;
    }
    at.whole = true;
  }
  return root;
}

function filterObject(body: object, wanted: Wanted): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(body)) {
    const inside = wanted.inside.get(name);
    if (inside === undefined || neverKept.has(name)) continue;
    const part = filterValue(value, inside);
    if (part !== undefined) kept[name] = part;
  }
  return kept;
}

function filterValue(value: unknown, wanted: Wanted): unknown {
  if (wanted.whole || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => filterValue(one, wanted)).filter((one) => one !== undefined);
  return typeof value === 'object' ? filterObject(value, wanted) : undefined;
}
