import { writeFileSync } from 'node:fs';
import { posix } from 'node:path';
import { read } from '../support/tree.ts';
import { texts } from '../support/tree-files.ts';

/** The one table of rows: `id: sentence`, or `id (follows with src/folder): sentence`, below the line of its section. */
const source = 'test/contract/rows.txt';
export const contractPage = 'docs/contract.md';

export interface Row {
  readonly id: string;
  readonly section: string;
  readonly sentence: string;
  /** The folder of src, not there yet, that part of the row comes with. */
  readonly follows?: string;
}

/** The ids that a title begins with. */
export interface Proof {
  readonly path: string;
  readonly ids: readonly string[];
}

export const rows: readonly Row[] = readRows(read(source));
const known = new Set(rows.map(({ id }) => id));
const families = new Set([...known].filter((id) => id.includes('-')).map((id) => id.split('-')[0]));

/** Every title of a test that begins with ids (`D75: …`, `billing-2 D25: …`, `usage-*: …`), and every row of a table that becomes one. */
export const proofs: readonly Proof[] = [...texts]
  .filter(([path]) => /^test\/.*\.(?:test|suite|contract)\.ts$/.test(path))
  .flatMap(([path, text]) => listTitles(text).map((ids) => ({ path, ids })));

/** Returns the rows that an id of a title stands for: itself, or a whole family (`usage-*`); none if nothing is known by it. */
export function rowsOf(id: string): string[] {
  return id.endsWith('-*') ? [...known].filter((one) => one.startsWith(id.slice(0, -1))) : known.has(id) ? [id] : [];
}

/** Returns the page with each row, its sentence and the files whose titles prove it. */
export function makeContractPage(): string {
  const sections = [...new Set(rows.map(({ section }) => section))];
  return `# Contract

Every row of the interface specification and every decision (\`D…\`) about it in a sentence, with the files of tests that prove it. A
test proves the rows whose ids its title begins with: \`D75: …\`, \`billing-2 D25: …\`, \`usage-*: …\`. The sentences stand in
\`${source}\`; \`make verify\` writes this page. A row may say which folder part of it comes with later.

${sections.map(makeSection).join('\n')}`;
}

function readRows(text: string): Row[] {
  return text.split(/\n\n+/).flatMap((block) => {
    const [section = '', ...lines] = block.trim().split('\n');
    return lines.map((line) => {
      const [, id, follows, sentence] = /^([\w-]+)(?: \(follows with ([\w/.-]+)\))?: (.+)$/.exec(line) ?? [];
      if (!id || !sentence) throw new Error(`${source}: no row is: ${line}`);
      return { id, section, sentence, ...(follows && { follows }) };
    });
  });
}

function listTitles(text: string): string[][] {
  return [...text.matchAll(/['"`]([A-Za-z][\w-]*\*?(?: [A-Za-z][\w-]*\*?)*): /g)]
    .map(([, head = '']) => head.split(' '))
    .filter((words) => words.some(isId));
}

/** Tells an id, known or not, from a word of a sentence that has a colon. */
function isId(word: string): boolean {
  return known.has(word) || /^D\d+$/.test(word) || (word.includes('-') && families.has(word.split('-')[0]!));
}

function makeSection(section: string): string {
  const lines = rows
    .filter((row) => row.section === section)
    .map(({ id, sentence, follows }) => {
      const paths = new Set(proofs.filter(({ ids }) => ids.flatMap(rowsOf).includes(id)).map(({ path }) => path));
      const links = [...paths].sort().map((path) => `[${nameOf(path)}](${posix.relative('docs', path)})`);
      return `| ${id} | ${sentence} | ${[...links, ...(follows ? [`follows with ${follows}`] : [])].join(', ')} |`;
    });
  return `## ${section}\n\n| id | what was decided | tests |\n| --- | --- | --- |\n${lines.join('\n')}\n`;
}

function nameOf(path: string): string {
  return path.replace(/^test\//, '').replace(/\.(?:test|suite|contract)\.ts$/, '');
}

if (import.meta.main) writeFileSync(contractPage, makeContractPage());
