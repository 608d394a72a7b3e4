import { execFileSync } from 'node:child_process';

/** One fenced block of a page, under its heading. */
export interface Block {
  readonly heading: string;
  readonly language: string;
  readonly text: string;
  readonly line: number;
}

/** A command of a page, and the answer that stands behind it. */
export interface Example {
  readonly command: string;
  readonly line: number;
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}

/** The request of a curl line. */
export interface CurlRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** Every fenced block of a page. */
export function listBlocks(page: string): Block[] {
  return [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(({ 0: _, 1: language = '', 2: text = '', index }) => {
    const before = page.slice(0, index);
    const heading = [...before.matchAll(/^#+ (.*)$/gm)].at(-1)?.[1] ?? '';
    return { heading, language, text, line: before.split('\n').length };
  });
}

/** Every command with the answer right behind it. */
export function listExamples(page: string): Example[] {
  const blocks = listBlocks(page);
  return blocks.flatMap(({ language, text, line }, n) => {
    if (language !== 'sh') return [];
    const answer = blocks[n + 1];
    if (answer?.language !== 'http') throw new Error(`Line ${line}: a command without its answer`);
    const [head = '', ...rest] = answer.text.split('\n\n');
    const [status = '', ...headers] = head.trim().split('\n');
    const pairs = headers.map((header) => header.split(/: (.*)/s) as [string, string]);
    return { command: text, line, status: Number(status), headers: pairs, body: rest.join('\n\n').trim() };
  });
}

/** Rows of the tables of a page whose first column is named so, with the heading they stand under. */
export function listRows(page: string, column: string): { heading: string; cells: string[] }[] {
  let [heading, isInside] = ['', false];
  return page.split('\n').flatMap((line) => {
    heading = /^#+ (.*)$/.exec(line)?.[1] ?? heading;
    if (!line.startsWith('|')) isInside = false;
    if (line.startsWith(`| ${column} |`)) isInside = true;
    const isRow = isInside && line.startsWith('| ') && !/^\| (?:---|\w)/.test(line);
    return isRow
      ? [
          {
            heading,
            cells: line
              .slice(1, -1)
              .split('|')
              .map((cell) => cell.trim()),
          },
        ]
      : [];
  });
}

/** Understands a curl line as a shell and curl would, with these variables. */
export function readCurl(command: string, env: Readonly<Record<string, string>>): CurlRequest {
  const told = execFileSync('sh', ['-euc', `curl() { printf '%s\\0' "$@"; }\n${command}`], { env, encoding: 'utf8' });
  const words = told.split('\0').slice(0, -1);
  const headers: Record<string, string> = {};
  let [method, url, body]: [string, string, string | undefined] = ['GET', '', undefined];
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (word === '-N' || word === '-L') continue;
    if (!word.startsWith('-')) {
      url = word;
      continue;
    }
    const value = words.shift() ?? '';
    if (word === '-X') method = value;
    else if (word === '-d') body = value;
    else if (word === '-r') headers.range = `bytes=${value}`;
    else if (word === '-H') headers[value.split(': ')[0]!.toLowerCase()] = value.split(/: (.*)/s)[1] ?? '';
    else if (word !== '-o') throw new Error(`The option ${word} is not known`);
  }
  return { method, url, headers, body };
}

const more = '…';
/** Texts that are others each time, and what is the same of them. */
const changing: readonly (readonly [RegExp, string])[] = [
  [/https?:\/\/[^/\s"]+(\/files\/\S*)\?exp=\d+&sig=[\w-]+/g, 'ORIGIN$1'],
  [/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UUID'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, 'TIME'],
  [/[0-9a-f]{64}/g, 'SHA256'],
];
/** Names whose texts an operator chooses. */
const chosen = new Set(['day', 'key', 'id', 'slug', 'alias', 'plan']);

/** A text without what is another one each time. */
export function steady(text: string): string {
  return changing.reduce((known, [pattern, word]) => known.replace(pattern, word), text);
}

/**
 * Differences between an answer and the page: every name must be there, and no other but where the page says that there are more,
 * the same texts, values of the same kind.
 */
export function listMisfits(shown: unknown, real: unknown, place = ''): string[] {
  if (Array.isArray(shown) && Array.isArray(real)) {
    if (shown.length !== real.length) return [`${place} has ${real.length} elements, not ${shown.length}`];
    return shown.flatMap((one, n) => listMisfits(one, real[n], `${place}[${n}]`));
  }
  if (isObject(shown) && isObject(real)) {
    const { [more]: isOpen, ...named } = shown;
    const missing = Object.keys(named).filter((name) => !(name in real));
    const extra = isOpen === undefined ? Object.keys(real).filter((name) => !(name in named)) : [];
    return [
      ...missing.map((name) => `${place}.${name} is missing`),
      ...extra.map((name) => `${place}.${name} is not shown`),
      ...Object.keys(named)
        .filter((name) => name in real)
        .flatMap((name) => listMisfits(named[name], real[name], `${place}.${name}`)),
    ];
  }
  const isSame =
    typeof shown === 'string' && typeof real === 'string'
      ? steady(shown) === steady(real) || (chosen.has(place.split('.').at(-1)!) && real !== '')
      : typeof shown === 'number' && typeof real === 'number'
        ? Number.isInteger(shown) === Number.isInteger(real)
        : shown === real;
  return isSame ? [] : [`${place} is ${JSON.stringify(real)}, not ${JSON.stringify(shown)}`];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
