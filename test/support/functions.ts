import { lineOf } from './tree.ts';
import { blank } from './typescript-source.ts';

export interface FunctionSpan {
  readonly name: string;
  readonly line: number;
  readonly lines: number;
}

/** The end of a line that opens the body of a function, as the formatter writes it: `) {`, `): Type {`, `) => {`, `) => ({`. */
const opening = /\)(?:: .*)?(?: =>)? \(?\{$/;
const notFunctions = /\b(?:if|for|for await|while|switch|catch)$/;

/**
 * Every function of a formatted source whose body has lines of its own, and how many lines it has. A `describe` is no
 * function: it may be as long as its file. What stands in a `describe` or an `it` does not count towards a function around it.
 */
export function listFunctions(source: string): FunctionSpan[] {
  const code = blank(source);
  const brackets = matchBrackets(code);
  const starts = new Map([...brackets].map(([open, close]) => [close, open]));
  const found: FunctionSpan[] = [];
  for (const { 0: line, index } of code.matchAll(/^.*\{$/gm)) {
    const parameters = opening.exec(line);
    if (!parameters) continue;
    const start = starts.get(index + parameters.index) ?? index;
    const before = code.slice(0, start).trimEnd();
    if (notFunctions.test(before)) continue;
    const name = /^\s*(describe|it)\(/.exec(line)?.[1] ?? /(?!async$)\b[\w$]+$/.exec(before)?.[0] ?? 'anonymous';
    const [first, last] = [lineOf(code, start), lineOf(code, brackets.get(index + line.length - 1) ?? code.length)];
    found.push({ name, line: first, lines: last - first + 1 });
  }
  return withoutSuites(found);
}

/** From each opening bracket to its closing one. */
function matchBrackets(code: string): Map<number, number> {
  const open: number[] = [];
  const pairs = new Map<number, number>();
  for (const { 0: bracket, index } of code.matchAll(/[([{}\])]/g)) {
    if ('([{'.includes(bracket)) open.push(index);
    else pairs.set(open.pop() ?? -1, index);
  }
  return pairs;
}

function withoutSuites(found: readonly FunctionSpan[]): FunctionSpan[] {
  const contains = (a: FunctionSpan, b: FunctionSpan) => a.line < b.line && b.line + b.lines <= a.line + a.lines;
  const suites = found.filter(({ name }) => name === 'describe' || name === 'it');
  const outermost = suites.filter((suite) => !suites.some((other) => contains(other, suite)));
  return found
    .filter(({ name }) => name !== 'describe')
    .map((span) => {
      const inside = outermost.filter((suite) => contains(span, suite));
      return { ...span, lines: inside.reduce((lines, suite) => lines - suite.lines, span.lines) };
    });
}
