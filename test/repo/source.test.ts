import { expect } from 'chai';
import { listFunctions } from '../support/functions.ts';
import { blank, listDeclared, listImports } from '../support/typescript-source.ts';

const body = (lines: number) => '    work();\n'.repeat(lines);

describe('what the rules see of a source', () => {
  for (const [title, source, seen] of [
    ['a comment goes', 'a; // {b\nc;', 'a;      \nc;'],
    ['a block comment keeps its lines', 'a/* {\n */b', 'a    \n   b'],
    ['a string leaves its quotes', `f('a{\\'b')`, `f('     ')`],
    ['the code in a template stays', `\`a{\${b({ c })}}d\``, '`    b({ c })   `'],
    ['a template in a template', `\`\${\`\${a}\`}\`+b`, '`  `  a ` `+b'],
    ['a regular expression goes', 'a = /[/]{"/.test(b)', 'a =        .test(b)'],
    ['a slash that divides stays', 'a = (b) / c / d', 'a = (b) / c / d'],
    ['a slash after a template divides', '`a` / b / c', '` ` / b / c'],
  ] as const) {
    it(title, () => {
      expect(blank(source)).to.equal(seen);
    });
  }

  it('lists every kind of import with its line', () => {
    const source = `import a from 'a';\nimport {\n  b,\n} from "./b.ts";\nawait import('c');\nexport * from 'd';\nimport 'e';\n// import 'f'\nBuffer.from('g');`;
    const lines = listImports(source).map(({ from, line }) => `${from} ${line}`);
    expect(lines).to.deep.equal(['a 1', './b.ts 4', 'c 5', 'd 6', 'e 7']);
  });

  it('lists what is declared', () => {
    const source = `export const A = 1; const b = 2; class C {} interface D {} type E = 1; type F<T> = T;
      import { type G } from 'g'; export async function* h() {} enum I { J } // class K`;
    expect(listDeclared(source)).to.have.members(['A', 'C', 'D', 'E', 'F', 'h']);
  });
});

describe('the length of a function', () => {
  for (const [title, source, found] of [
    ['a function', `export function a(b: string) {\n${body(3)}}`, ['a 5']],
    ['with a return type', `function a(): Promise<{ b: c }> {\n${body(3)}}`, ['a 5']],
    ['with a function as its type', `function a(): () => void {\n${body(3)}}`, ['a 5']],
    ['with parameters on lines of their own', `function a(\n  b: string,\n): void {\n${body(3)}}`, ['a 7']],
    ['with an object as its parameter', `function a({ b }: { b: c }) {\n${body(3)}}`, ['a 5']],
    ['an arrow', `const a = async (b) => {\n${body(3)}};`, ['anonymous 5']],
    ['an arrow that gives an object', `const a = () => ({\n${body(3)}});`, ['anonymous 5']],
    ['a method', `class A {\n  b(c: D): E {\n${body(3)}  }\n}`, ['b 5']],
    ['one within another', `function a() {\n  b(() => {\n${body(3)}  });\n}`, ['a 7', 'anonymous 5']],
    ['no function', `if (a) {\n${body(3)}}\nfor (const b of c()) {\n${body(3)}}`, []],
    ['no function over lines', `if (\n  a\n) {\n${body(3)}}`, []],
    ['no function: a call', `a({\n${body(3)}});`, []],
    ['a suite', `describe('a', () => {\n  it('b', () => {\n${body(3)}  });\n});`, ['it 5']],
    ['around suites', `function a() {\n  describe('b', () => {\n${body(9)}  });\n}`, ['a 2']],
    ['around tests', `function a() {\n  it('b', () => {\n${body(9)}  });\n}`, ['a 2', 'it 11']],
  ] as const) {
    it(title, () => {
      expect(listFunctions(source).map(({ name, lines }) => `${name} ${lines}`)).to.deep.equal(found);
    });
  }
});
