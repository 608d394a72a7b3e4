import { lineOf } from './tree.ts';

const tokens = {
  comment: /\/\/[^\n]*|\/\*[\s\S]*?\*\//y,
  string: /'(?:\\[\s\S]|[^'\\\n])*'|"(?:\\[\s\S]|[^"\\\n])*"/y,
  template: /[`}](?:\\[\s\S]|\$(?!\{)|[^\\`$])*(?:`|\$\{)/y,
  regex: /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])*\/[a-z]*/y,
  code: /[\w$]+|\s+|[\s\S]/y,
};
/** A slash after one of these begins a regular expression; elsewhere it divides. */
const beforeOperand = /(?:^|[([{,;:=!&|?+\-*%<>~^]|\b(?:return|typeof|case|in|of|void|throw|await|yield))$/;

/** Several rules look at the same sources. */
const blanked = new Map<string, string>();

/** TypeScript with every comment, string and regular expression blanked out; all positions are kept. */
export function blank(source: string): string {
  const known = blanked.get(source) ?? blankAll(source);
  blanked.set(source, known);
  return known;
}

function blankAll(source: string): string {
  let out = '';
  /** For every open brace, whether a template goes on after it. */
  const braces: boolean[] = [];
  while (out.length < source.length) {
    const [kind, token] = nextToken(source, out, braces.at(-1) === true);
    if (kind === 'template' && token.startsWith('}')) braces.pop();
    if (kind === 'template' && token.endsWith('{')) braces.push(true);
    if (kind === 'code' && token === '{') braces.push(false);
    if (kind === 'code' && token === '}') braces.pop();
    out += kind === 'code' ? token : blankToken(kind, token);
  }
  return out;
}

function nextToken(source: string, before: string, inTemplate: boolean): [keyof typeof tokens, string] {
  const first = source[before.length]!;
  const kinds: (keyof typeof tokens)[] = ['comment', 'string'];
  if (first === '`' || (first === '}' && inTemplate)) kinds.push('template');
  if (first === '/' && beforeOperand.test(before.trimEnd())) kinds.push('regex');
  for (const kind of kinds) {
    const token = match(tokens[kind], source, before.length);
    if (token) return [kind, token];
  }
  return ['code', match(tokens.code, source, before.length)];
}

function match(pattern: RegExp, source: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0] ?? '';
}

/** Quotes stay, so that one still sees that something stands there. */
function blankToken(kind: keyof typeof tokens, token: string): string {
  const blanked = token.replace(/[^\n]/g, ' ');
  if (kind === 'comment' || kind === 'regex') return blanked;
  const quote = (end: string) => (/['"`]/.test(end) ? end : ' ');
  return quote(token[0]!) + blanked.slice(1, -1) + quote(token.at(-1)!);
}

export interface Import {
  readonly from: string;
  readonly line: number;
}

/** Every module that a source names in an import, an export or a require. */
export function listImports(source: string): Import[] {
  return [...blank(source).matchAll(/\b(?:from\s*|(?:import|require)\s*\(?\s*)(['"])( *)\1/g)].map((found) => {
    const end = found.index + found[0].length - 1;
    return { from: source.slice(end - found[2]!.length, end), line: lineOf(source, found.index) };
  });
}

/** Lists the functions, classes, types and interfaces that a source declares, exported or not, and every exported constant. */
export function listDeclared(source: string): string[] {
  const code = blank(source);
  const named = code.matchAll(/\b(?:function\s*\*?|class|interface)\s+([\w$]+)|\btype\s+([\w$]+)\s*[=<]/g);
  const constants = code.matchAll(/\bexport\s+(?:const|let)\s+([\w$]+)/g);
  return [...named, ...constants].map(([, one, other]) => one ?? other!);
}
