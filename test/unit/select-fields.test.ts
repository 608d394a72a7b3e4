import { expect } from 'chai';
import fc from 'fast-check';
import { fieldsAllowed, filterFields, type Path, parseFields } from '../../src/model/select-fields.ts';

type Body = Record<string, unknown>;

function filter(fields: string, body: Body): unknown {
  const parsed = parseFields(fields);
  if (!parsed.ok) throw new Error(parsed.sentence);
  return filterFields(body, parsed.value);
}

describe('parseFields', () => {
  const rows: [what: string, text: string, paths: Path[]][] = [
    ['one name', 'a', [['a']]],
    ['names and levels', 'a,b.c.d', [['a'], ['b', 'c', 'd']]],
    ['white space around commas', ' a ,\tb.c\r\n, d ', [['a'], ['b', 'c'], ['d']]],
    ['nothing between commas', ',a,,', [['a']]],
    ['an empty text', '', []],
    ['a blank text', ' , ', []],
    ['1024 paths', Array(1024).fill('a').join(), Array(1024).fill(['a'])],
    ['1024 levels', `${'a.'.repeat(1023)}a`, [Array(1024).fill('a')]],
    ['2048 characters', 'ü'.repeat(2048), [['ü'.repeat(2048)]]],
    ['a line end inside a name', 'a\nb', [['a\nb']]],
  ];
  for (const [what, text, paths] of rows) {
    it(`fields-blanks: reads ${what}`, () => expect(parseFields(text)).to.deep.equal({ ok: true, value: paths }));
  }

  const wrong: [what: string, text: string][] = [
    ['2049 characters', 'ü'.repeat(2049)],
    ['a NUL', 'a\u0000'],
    ['a control character of C1', 'a\u0085'],
    ['a lone surrogate', 'a,\ud800'],
  ];
  for (const [what, text] of wrong) {
    it(`refuses ${what}`, () => expect(parseFields(text)).to.deep.equal({ ok: false, sentence: fieldsAllowed }));
  }
});

describe('filterFields', () => {
  const body: Body = {
    status: 'CompletedJob',
    error: null,
    packs: null,
    account: { slug: 's', name: 'n' },
    quotas: { daily: null, total: { used: 1, left: 2 } },
    items: [{ id: 1, t: 'x' }, { t: 'y' }, null, 7],
    nested: [[{ id: 1, t: 'x' }], []],
    tags: ['x', 'y'],
    empty: {},
  };
  const rows: [what: string, fields: string, kept: unknown][] = [
    ['keeps listed names only', 'status,error', { status: 'CompletedJob', error: null }],
    ['keeps a whole object', 'account', { account: { slug: 's', name: 'n' } }],
    ['keeps a parent with the listed subfields', 'account.slug', { account: { slug: 's' } }],
    ['keeps several subfields of one parent', 'account.name,account.slug', { account: { slug: 's', name: 'n' } }],
    ['goes several levels down', 'quotas.total.left', { quotas: { total: { left: 2 } } }],
    ['keeps null subfields', 'quotas.daily', { quotas: { daily: null } }],
    ['keeps a parent that is null', 'packs.items.id', { packs: null }],
    ['keeps a parent with none of the subfields as an empty object', 'account.nope', { account: {} }],
    ['keeps an empty object', 'empty.x', { empty: {} }],
    ['keeps all of a parent listed beside its subfield', 'account.slug,account', { account: { slug: 's', name: 'n' } }],
    ['keeps all of a parent listed before its subfield', 'account,account.slug', { account: { slug: 's', name: 'n' } }],
    ['crosses arrays, and leaves out plain values there', 'items.id', { items: [{ id: 1 }, {}, null] }],
    ['crosses arrays in arrays', 'nested.id', { nested: [[{ id: 1 }], []] }],
    ['ignores positions in arrays', 'items.0', { items: [{}, {}, null] }],
    ['ignores the length of an array', 'tags.length', { tags: [] }],
    ['ignores names below a plain value', 'status.length,account.slug.x', { account: {} }],
    ['ignores unknown names', 'nope,no.pe,status', { status: 'CompletedJob' }],
    ['answers an empty object when all names are unknown', 'nope', {}],
    ['ignores inherited names', 'toString,hasOwnProperty,account.valueOf', { account: {} }],
    ['ignores __proto__', '__proto__,__proto__.x', {}],
    [
      'ignores constructor and prototype',
      'constructor,constructor.prototype.x,account.constructor.name',
      { account: {} },
    ],
    ['keeps everything when nothing is named', ' , ', body],
    ['is exact about case and empty names', 'Status,account.', { account: {} }],
  ];
  for (const [what, fields, kept] of rows) it(what, () => expect(filter(fields, body)).to.deep.equal(kept));

  it('never keeps own fields with the names of prototypes, and changes no prototype', () => {
    const hostile: Body = JSON.parse(
      '{"__proto__":{"x":1},"constructor":1,"a":{"__proto__":{"x":1},"prototype":2,"b":3}}',
    );
    const kept = filter('__proto__.x,constructor,a.__proto__.x,a.prototype,a.b', hostile);
    expect(JSON.stringify(kept)).to.equal('{"a":{"b":3}}');
    expect(Object.getPrototypeOf(kept)).to.equal(Object.prototype);
    expect('x' in Object.prototype).to.equal(false);
  });

  it('leaves the body as it was', () => {
    const before = structuredClone(body);
    filter('account.slug,items.id', body);
    expect(body).to.deep.equal(before);
  });
});

describe('any filter on any body', () => {
  const names = ['a', 'b', 'c', '', '__proto__', 'constructor', 'prototype', 'length', '0'];
  const name = fc.constantFrom(...names);
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof({ maxDepth: 5 }, fc.constantFrom(null, true, 0, 1.5, '', 'text'), tie('array'), tie('object')),
    array: fc.array(tie('value'), { maxLength: 4 }),
    object: fc.array(fc.tuple(name, tie('value')), { maxLength: 5 }).map((entries) => {
      const made: Body = {};
      for (const [key, child] of entries) Object.defineProperty(made, key, { value: child, ...open });
      return made;
    }),
  }));
  const open = { enumerable: true, configurable: true, writable: true };
  const bodies = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'constructor'), value, { noNullPrototype: true });
  const paths = fc.array(fc.array(name, { minLength: 1, maxLength: 4 }), { maxLength: 6 });

  it('gives a part of the body', () => {
    fc.assert(fc.property(bodies, paths, (body, wanted) => isPart(filterFields(body, wanted), body)));
  });

  it('gives the same when it is applied again', () => {
    fc.assert(
      fc.property(bodies, paths, (body, wanted) => {
        const once = filterFields(body, wanted);
        expect(filterFields(once, wanted)).to.deep.equal(once);
      }),
    );
  });

  it('gives no more than a filter of more paths', () => {
    fc.assert(
      fc.property(bodies, paths, paths, (body, some, more) => {
        fc.pre(some.length > 0);
        return isPart(filterFields(body, some), filterFields(body, [...some, ...more]));
      }),
    );
  });

  it('keeps what a path names', () => {
    fc.assert(
      fc.property(value, (inside) => {
        expect(filterFields({ a: { b: inside, c: 1 }, d: 2 }, [['a', 'b']])).to.deep.equal({ a: { b: inside } });
      }),
    );
  });

  it('is read from any text without an error', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(name).map((some) => some.join('.')),
    );
    fc.assert(
      fc.property(texts, bodies, (text, body) => {
        const parsed = parseFields(text);
        return !parsed.ok || isPart(filterFields(body, parsed.value), body);
      }),
    );
  });
});

/** Returns true when one JSON value is another without some fields of objects and some elements of arrays. */
function isPart(part: unknown, whole: unknown): boolean {
  if (typeof part !== 'object' || part === null || typeof whole !== 'object' || whole === null) return part === whole;
  if (Array.isArray(part) !== Array.isArray(whole)) return false;
  if (Array.isArray(part) && Array.isArray(whole)) {
    let at = 0;
    for (const one of part) {
      while (at < whole.length && !isPart(one, whole[at])) at++;
      if (at++ >= whole.length) return false;
    }
    return true;
  }
  const theirs = new Map(Object.entries(whole));
  return Object.entries(part).every(([key, child]) => theirs.has(key) && isPart(child, theirs.get(key)));
}
